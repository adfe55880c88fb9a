"""Runs COMMAND on a terminal of 100 columns, types a Ctrl-C when it has shown each TEXT in turn, writes what it shows to
LOG and exits with its exit code (128 + the signal that ended it).

usage: on_terminal.py LOG [TEXT...] -- COMMAND...
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

log, words = sys.argv[1], sys.argv[2:]
texts, command = [word.encode() for word in words[:words.index("--")]], words[words.index("--") + 1:]
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs behind `&` would ignore it
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
shown, deadline = b"", time.monotonic() + 200
while time.monotonic() < deadline:
    if not select.select([terminal], [], [], 1)[0]:
        continue
    try:
        part = os.read(terminal, 65536)
    except OSError:  # all that had it open have ended
        part = b""
    if not part:
        break
    shown += part
    if texts and texts[0] in shown:
        os.write(terminal, b"\x03")
        texts.pop(0)
else:
    os.kill(pid, signal.SIGKILL)
with open(log, "wb") as file:
    file.write(shown)
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
