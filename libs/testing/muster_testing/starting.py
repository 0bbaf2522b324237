"""Start the process of a service: by a fork of one that has its imports, or as a shell does where that cannot be."""

import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import BinaryIO, Protocol, Self

from muster_bus.broker.embedded import die_with_parent

# A test must not spend somebody's key, nor depend on the settings of a deployment: what it needs it passes itself.
NOT_INHERITED = ("MUSTER_", "ANTHROPIC_", "OPENAI_", "OTEL_")
NUMBER = struct.Struct("i")  # as a report carries it: first the process, then the code that it ended with
LOOK_SECONDS = 0.2  # of two who wait for one process, the second learns of its end by looking again


@dataclass(frozen=True)
class Order:
    """A service that is to be started: the words after `muster`, and what a new process would inherit."""

    words: list[str]
    die_at: str
    env: dict[str, str]
    folder: str

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, written: bytes) -> Self:
        return cls(**json.loads(written))


class Process(Protocol):
    """What is asked of a process that was started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...


def inherited() -> dict[str, str]:
    """The environment of what a test starts: it imports what the test can import."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    return {**ours, "PYTHONPATH": os.pathsep.join(str(path) for path in sys.path if path)}


def start_process(words: list[str], die_at: str | None, env: Mapping[str, str], output: BinaryIO) -> Process:
    """Start `muster` with these words; what it prints goes to `output`."""
    if sys.platform == "linux" and all(env.get(name) == os.environ.get(name) for name in _of_python(env)):
        order = Order(words, die_at or "", dict(env), os.getcwd())
        return _starter.fork(order, output.fileno())
    return subprocess.Popen(
        muster_command(words, die_at),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=env,
        preexec_fn=die_with_parent(),
    )


def muster_command(words: list[str], die_at: str | None = None) -> list[str]:
    """The `muster` command, or the same command that crashes at a step."""
    module = ["muster_testing.crash", die_at] if die_at else ["muster_cli"]
    return [sys.executable, "-m", *module, *words]


def _of_python(env: Mapping[str, str]) -> set[str]:
    """What the interpreter reads once, at its start; of these only PYTHONPATH can be given later."""
    return {name for name in {*env, *os.environ} if name.startswith("PYTHON")} - {"PYTHONPATH"}


class Forked:
    """A process whose end its starter reports."""

    def __init__(self, report: int) -> None:
        self._report = report
        self._code: int | None = None
        self._asking = threading.Lock()
        found = self._read()
        if found is None:
            raise AssertionError("the process that starts services has ended; it says why on standard error")
        self.pid = found

    def poll(self) -> int | None:
        with self._asking:
            if self._code is None and self._has_news(0.0):
                found = self._read()
                self._code = -signal.SIGKILL if found is None else found  # its starter ended, and it with that
                os.close(self._report)
            return self._code

    def wait(self, timeout: float | None = None) -> int:
        limit = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = LOOK_SECONDS if limit is None else limit - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self._has_news(min(left, LOOK_SECONDS))
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def _has_news(self, within: float) -> bool:
        report = select.poll()
        report.register(self._report, select.POLLIN)
        return bool(report.poll(within * 1000))

    def _read(self) -> int | None:
        written = os.read(self._report, NUMBER.size)
        return NUMBER.unpack(written)[0] if written else None


class _Starter:
    """The process that has the imports, from the first start on. It ends when this one does."""

    def __init__(self) -> None:
        self._orders: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, order: Order, output: int) -> Forked:
        if self._orders is None or self._process is None or self._process.poll() is not None:
            self._orders = self._begin()
        report, theirs = os.pipe()
        try:
            socket.send_fds(self._orders, [order.written()], [output, theirs])
        finally:
            os.close(theirs)
        return Forked(report)

    def _begin(self) -> socket.socket:
        self.end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "muster_testing.starter", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=inherited(),
                pass_fds=[theirs.fileno()],
            )
        return ours

    def end(self) -> None:
        if self._orders is not None:
            self._orders.close()
        if self._process is not None:
            self._process.wait()


_starter = _Starter()
atexit.register(_starter.end)
