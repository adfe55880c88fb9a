"""Stands for a process of warm_python.py's server: has it made, hands signals on, and ends as it does.

    python -I -S warm_client.py ADDRESS WORDS...
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGCONT)


def main():
    address, *words = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # those that come before there is somebody to hand them to
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"\0{address}")
        request = json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
        socket.send_fds(server, [struct.pack("<I", len(request))], [0, 1, 2])
        server.sendall(request)
        pid = received(server)
        for number in SIGNALS:
            signal.signal(number, lambda number, _: hand_on(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = received(server)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def hand_on(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def received(server):
    data = server.recv(4, socket.MSG_WAITALL)
    if len(data) < 4:
        sys.exit("the test's server of Python processes is gone")
    return struct.unpack("<i", data)[0]


main()
