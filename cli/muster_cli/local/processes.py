"""Muster's commands as child processes: started, killed and stopped by name; they die with this process."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from muster_bus.broker.embedded import die_with_parent
from muster_protocol.errors import Misconfigured

READY_SECONDS = 60.0  # it takes one second on a machine that is not busy
STOP_SECONDS = 8.0
LAST_LINES = 12


class Processes:
    """Children of this process. A child logs to `<name>.log` in the folder and prints to `<name>.out`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._die_with_parent = die_with_parent()

    def start(self, name: str, *args: str, env: Mapping[str, str] | None = None) -> int:
        """Run `muster <args>`; returns its process id at once. `ready` waits for it."""
        if name in self._children and self.is_running(name):
            raise ValueError(f"{name} is already running")
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "MUSTER_NATS_URL": self.url, "PYTHONUNBUFFERED": "1", **(env or {})}
        with (self.folder / f"{name}.log").open("ab") as log, (self.folder / f"{name}.out").open("wb") as out:
            self._children[name] = subprocess.Popen(
                [sys.executable, "-m", "muster_cli", *args],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the parent, which stops its children in order
                preexec_fn=self._die_with_parent,
            )
        return self._children[name].pid

    async def ready(self, *names: str, seconds: float = READY_SECONDS) -> None:
        """Wait until each of them prints that it is ready; one that ends instead is an error that shows its log."""
        end = time.monotonic() + seconds
        for name in names:
            while "ready" not in self._printed(name):
                if not self.is_running(name):
                    raise Misconfigured(f"{name} ended at its start:\n{self.end_of_log(name)}")
                if time.monotonic() > end:
                    raise Misconfigured(f"{name} was not ready within {seconds:g} s:\n{self.end_of_log(name)}")
                await asyncio.sleep(0.02)

    def __contains__(self, name: str) -> bool:
        return name in self._children

    def pid(self, name: str) -> int:
        return self._children[name].pid

    def is_running(self, name: str) -> bool:
        return self._children[name].poll() is None

    def end_of_log(self, name: str) -> str:
        """The end of a child's log."""
        text = (self.folder / f"{name}.log").read_text(errors="replace") or self._printed(name)
        lines = text.strip().splitlines()[-LAST_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (its log is empty)"

    def kill(self, name: str) -> None:
        """End it as a crash would, with SIGKILL."""
        self._children[name].kill()
        self._children[name].wait()

    def stop(self, name: str, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM, and SIGKILL when that does not help in time; returns the exit code."""
        self._ask_to_stop(name)
        return self._wait(name, time.monotonic() + seconds)

    def stop_all(self, seconds: float = STOP_SECONDS) -> dict[str, int]:
        """Stop every child, all at once; nothing is left running. Returns their exit codes."""
        for name in self._children:
            self._ask_to_stop(name)
        end = time.monotonic() + seconds
        return {name: self._wait(name, end) for name in self._children}

    def _printed(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text(errors="replace")

    def _ask_to_stop(self, name: str) -> None:
        child = self._children[name]
        if child.poll() is None:
            child.send_signal(signal.SIGCONT)  # a paused process would not get SIGTERM
            child.terminate()

    def _wait(self, name: str, end: float) -> int:
        child = self._children[name]
        try:
            return child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()
