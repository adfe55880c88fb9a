"""Python processes that begin with the test's packages imported. Most of what a process of these tests computes is `import
torch` and `import hetseq`: a copy of the test's own process, made before the test begins, copies itself for each.

`cold` tests start Python itself. What differs from it: the copies have one seed of hashes, the environment is theirs only
from their beginning on, and they leave their modules to the kernel when they end.
"""

import atexit
import contextlib
import gc
import json
import os
import pathlib
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading

CLIENT = pathlib.Path(__file__).with_name("warm_client.py")

_address = ""     # of the server, in Linux's abstract namespace
_lifeline = None  # the server ends when this does


class _Job(Exception):
    """Raised in a copy, past all that is the server's."""

    def __init__(self, request):
        super().__init__()
        self.request = request


def start():
    """From now on `command` works. Returns in the test's process; a copy never does."""
    global _address, _lifeline
    if _address:
        return
    _address = f"hetseq-test-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{_address}")
    listener.listen(64)
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() != 0:
        listener.close()
        theirs.close()
        _lifeline = ours
        atexit.register(ours.close)
        return
    ours.close()
    gc.freeze()  # the collector would look through all that was imported, in each copy, and so copy its memory
    try:
        _Server(listener, theirs).serve()
    except _Job as job:
        request = job.request
    _run(request)


def command():
    """What stands in place of `python`."""
    return [sys.executable, "-I", "-S", str(CLIENT), _address] if _address else [sys.executable]


class _Server:
    def __init__(self, listener, lifeline):
        self._listener, self._lifeline = listener, lifeline
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(lifeline, selectors.EVENT_READ, self._end)
        self._copies = {}  # by their connections, those that run

    def serve(self):
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _end(self):
        for pid in self._copies.values():
            os.kill(pid, signal.SIGKILL)
        os._exit(0)

    def _accept(self):
        connection, _ = self._listener.accept()
        request, files = _received(connection)
        pid = os.fork()
        if pid == 0:
            self._become_the_process(connection, files)
            raise _Job(request)
        for file in files:
            os.close(file)
        ended = os.pidfd_open(pid)
        self._copies[connection] = pid
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._abandoned(connection))
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._ended(connection, ended))
        connection.sendall(struct.pack("<i", pid))

    def _become_the_process(self, connection, files):
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)
        self._selector.close()
        for other in (connection, self._listener, self._lifeline, *self._copies):
            other.close()

    def _abandoned(self, connection):
        """Its client was killed, and so is it."""
        self._selector.unregister(connection)
        os.kill(self._copies[connection], signal.SIGKILL)

    def _ended(self, connection, ended):
        self._selector.unregister(ended)
        os.close(ended)
        status = os.waitpid(self._copies.pop(connection), 0)[1]
        with contextlib.suppress(OSError):
            connection.sendall(struct.pack("<i", status))
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        connection.close()


def _received(connection):
    """What the client sent, and its first three files."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    size, = struct.unpack("<I", head)
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return json.loads(data), files


def _run(request):
    """As Python would. Never returns."""
    try:
        _run_words(request)
        status = 0
    except SystemExit as end:
        status = _status(end.code)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def _status(code):
    if code is None or isinstance(code, int):
        return (code or 0) & 0xff
    print(code, file=sys.stderr)
    return 1


def _run_words(request):
    _take_environment(request["environment"])
    os.chdir(request["folder"])
    words = request["words"]
    if words[0] == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _take_environment(environment):
    import torch

    tests_own = [str(CLIENT.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
    sys.path[:] = [*filter(None, environment.get("PYTHONPATH", "").split(":")), *(path for path in sys.path if path not in tests_own)]
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", os.cpu_count())))
    for name in ("harness", "warm_python"):
        sys.modules.pop(name, None)
