"""Running the command line: in this process, as a program, and on a terminal; and a model for it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "agent"))
from responses_api import ResponsesApi

SECONDS = 60


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def program(*args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "memshelf", *args],
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, **(env or {})},
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def _outside_of_tests() -> dict[str, str]:
    """The environment without the variables by which programs notice that they are being tested."""
    return {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_VERSION")}


def _owns_its_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the program
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests in the background has it ignored


class Terminal:
    """A command in a process of its own, with a terminal that it owns."""

    def __init__(self, *args: str, env: Mapping[str, str] | None = None, columns: int = 100) -> None:
        self._us, them = pty.openpty()
        fcntl.ioctl(them, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memshelf", *args],
            stdin=them,
            stdout=them,
            stderr=them,
            start_new_session=True,
            preexec_fn=_owns_its_terminal,
            env={**_outside_of_tests(), "TERM": "xterm", **(env or {})},
        )
        os.close(them)
        self.seen = ""
        self._raw = b""
        self._read_to = 0

    def send(self, text: str) -> None:
        os.write(self._us, text.encode())

    def until(self, text: str) -> None:
        """Wait for a text that comes after what was waited for before."""
        deadline = time.monotonic() + SECONDS
        while (at := self.seen.find(text, self._read_to)) < 0:
            if not self._more(deadline):
                raise AssertionError(f"{text!r} never came; seen: {self.seen!r}")
        self._read_to = at + len(text)

    def interrupt(self) -> None:
        """Press Ctrl-C at a prompt, once the program waits there.

        Python misses a signal that comes between showing a prompt and waiting for the answer.
        """
        status = Path(f"/proc/{self.process.pid}/stat")
        deadline = time.monotonic() + SECONDS
        while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline
            self._more(time.monotonic() + 0.01)
        self.send("\x03")

    def until_it_opens(self, name: str) -> None:
        """Wait until the program has a file open."""
        deadline = time.monotonic() + SECONDS
        while not any(os.path.basename(os.path.realpath(each)) == name for each in self._descriptors()):
            assert time.monotonic() < deadline
            self._more(time.monotonic() + 0.01)

    def _descriptors(self) -> list[Path]:
        return list(Path(f"/proc/{self.process.pid}/fd").iterdir())

    def end(self) -> int:
        """Wait for the end of the command and return its exit code."""
        deadline = time.monotonic() + SECONDS
        while self._more(deadline):
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._us)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._us], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._us, 65_536) if ready else b""
        except OSError:  # how Linux says that the other side is closed
            data = b""
        self._raw += data
        self.seen = self._raw.decode(errors="replace")
        return bool(data)


@dataclass(frozen=True)
class Held:
    """An answer of which only the first half ever comes."""

    items: list[dict[str, Any]]


class ModelServer(ResponsesApi):
    """A model behind the OpenAI API on this machine, in a thread of its own."""

    def start(self) -> None:
        started: list[str] = []
        ready = threading.Event()

        async def serve() -> None:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            async with self.serving() as url:
                started.append(url)
                ready.set()
                await self._end.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),))
        self._thread.start()
        assert ready.wait(SECONDS)
        self.url = started[0]

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(SECONDS)

    def will(self, *replies: Any) -> None:
        """Answer the next requests with these."""
        self._replies += replies

    def _answer(self, asked: Any, items: Any) -> bytes:
        if isinstance(items, Held):
            whole: bytes = super()._answer(asked, items.items)
            return whole[: whole.rindex(b"event: response.output_text.delta")]
        return super()._answer(asked, items)
