"""The `memshelf` program, loaded once: each command is a fork of a process that has imported everything.

Commands run as their users run them, from a shell, with arguments, environment, folder and streams of their own. Only
the second that it takes to import an agent framework is spent once instead of a hundred times.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as loaded:
    loaded.connect({address!r})
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(loaded, [len(request).to_bytes(4, "big")], [0, 1, 2])
    loaded.sendall(request)
    sys.exit(int.from_bytes(loaded.recv(1), "big"))
"""


@contextmanager
def preloaded(folder: Path) -> Iterator[Path]:
    """A folder for the search path, with the program `memshelf` in it."""
    address = str(folder / "loaded")
    program = folder / "bin" / "memshelf"
    program.parent.mkdir()
    program.write_text(_PROGRAM.format(python=sys.executable, address=address))
    program.chmod(0o700)
    with subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE) as loaded:
        assert loaded.stdout is not None
        assert loaded.stdout.readline() == b"loaded\n"
        try:
            yield program.parent
        finally:
            loaded.terminate()


def _serve(address: str) -> None:
    import click
    import pydantic_ai.models.openai  # noqa: F401  # what a chat needs

    import memshelf.cli.conversation
    import memshelf.cli.story
    import memshelf.records.backends.sql.store  # noqa: F401
    from memshelf.cli.program import cli

    with click.Context(cli) as context:  # each command is loaded when it is asked for
        for name in cli.list_commands(context):
            cli.get_command(context, name)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("loaded", flush=True)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                _run(connection)
            connection.close()


def _run(connection: socket.socket) -> None:
    """Run one command, and end the process with it."""
    from memshelf.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as asked:
        arguments, folder, environment = json.loads(asked.read(int.from_bytes(length, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    code = 1
    try:
        code = main(arguments)
        sys.stdout.flush()
    finally:
        connection.sendall(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
