"""Prints what zsh offers for a line, sorted, with blanks between.

usage: zsh_offers.py SCRIPT LINE...      a line of output for each LINE

zsh completes only for a person, so this is one, at a terminal of its own. Offers pass through zsh's `compadd`, which is
replaced here by one that notes them.
"""
import os
import pty
import select
import sys
import tempfile
import time

SETUP = """
PS1=READY; setopt no_beep; unsetopt auto_menu
autoload -Uz compinit; compinit -u -D
source {script}
compadd() {{
  if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return $?; fi
  typeset -a offered; builtin compadd -A offered "$@"
  print -rl -- "$offered[@]" >>{offers}
  builtin compadd "$@"
}}
finished() {{ zle complete-word; : >{done} }}
zle -N finished; bindkey '^I' finished
: >{done}
"""
PATIENCE = 30  # seconds


class Shell:
    def __init__(self, script, folder):
        names = {name: os.path.join(folder, name) for name in ("offers", "done", "setup")}
        self.offers, self.done = names["offers"], names["done"]
        with open(names["setup"], "w", encoding="utf-8") as file:
            file.write(SETUP.format(script=script, offers=self.offers, done=self.done))
        child, self.terminal = pty.fork()
        if child == 0:
            os.environ["TERM"] = "dumb"
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.type(f"source {names['setup']}\n")

    def type(self, text):
        """Types it and waits until zsh is done with it."""
        open(self.offers, "w", encoding="utf-8").close()
        if os.path.exists(self.done):
            os.remove(self.done)
        os.write(self.terminal, text.encode())
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.done):
            if time.monotonic() > end:
                sys.exit(f"zsh did not answer in {PATIENCE} s: {text!r}")
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)

    def offered(self, line):
        self.type(f"\x15{line}\t")
        with open(self.offers, encoding="utf-8") as file:
            return " ".join(sorted(set(file.read().split())))


def main(script, *lines):
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(script, folder)
        for line in lines:
            print(shell.offered(line))


main(*sys.argv[1:])
