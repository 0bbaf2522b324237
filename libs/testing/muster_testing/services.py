"""Muster's services in processes of their own: started, stopped, killed and waited for by name."""

import asyncio
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from muster_testing.starting import Process, inherited, muster_command, start_process
from muster_testing.waiting import LIMIT_SECONDS, until_asked

GRACE_SECONDS = 10.0
READY = ("ready:", " is ready")  # the service's log line, or the command's line on standard output
HTTP_URL = re.compile(r"ready: (http://\S+)")
SHOWN_CHARACTERS = 2000  # of the log of a service that ended


class Services:
    """The services of one team. What each prints goes to `<instance>.log` in the folder."""

    def __init__(self, team_file: Path, folder: Path, url: str) -> None:
        self.team_file = team_file.resolve()
        self.folder = folder
        self.url = url
        self._processes: dict[str, Process] = {}
        self._log_starts: dict[str, int] = {}  # where the log of the present process begins

    async def start(
        self,
        service: str,
        instance: str,
        *options: str,
        die_at: str | None = None,
        grace_seconds: float = GRACE_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a service and wait until it is ready: `start("worker", "w1", "--role", "clerk")`."""
        self.spawn(service, instance, *options, die_at=die_at, grace_seconds=grace_seconds, env=env)
        await self.until(lambda: self.is_ready(instance), f"{instance} is ready", instance=instance)

    def spawn(
        self,
        service: str,
        instance: str,
        *options: str,
        die_at: str | None = None,
        grace_seconds: float = GRACE_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a service without waiting; `die_at` is a step of `muster_testing.crash`."""
        path = self.folder / f"{instance}.log"
        self._log_starts[instance] = path.stat().st_size if path.exists() else 0
        with path.open("ab") as output:
            words = [service, "--name", instance, *self._options(service, options)]
            env = {**environment(self.folder, self.url, grace_seconds), **(env or {})}
            self._processes[instance] = start_process(words, die_at, env, output)

    async def until_paused(self, instance: str) -> None:
        """Wait until a signal has stopped a service in the middle of its work."""
        asked = ["ps", "-p", str(self.pid(instance)), "-o", "stat="]

        async def ask() -> bool:
            done = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, check=True)
            return done.stdout.startswith("T")

        await until_asked(ask, f"{instance} is paused")

    def http_url(self, instance: str) -> str:
        """Where a coordinator that is ready serves its API."""
        return HTTP_URL.findall(self.service_log(instance))[-1]

    def pid(self, instance: str) -> int:
        return self._processes[instance].pid

    def is_running(self, instance: str) -> bool:
        return self._processes[instance].poll() is None

    def is_ready(self, instance: str) -> bool:
        """Whether a service, as it was last started, has said that it is ready."""
        with (self.folder / f"{instance}.log").open("rb") as log:
            log.seek(self._log_starts[instance])
            printed = log.read().decode(errors="replace")
        return any(words in printed for words in READY)

    def service_log(self, instance: str) -> str:
        """All that a service has printed, also before it was started again."""
        return (self.folder / f"{instance}.log").read_text(errors="replace")

    def signal(self, instance: str, number: signal.Signals) -> None:
        self._processes[instance].send_signal(number)

    def kill(self, instance: str) -> None:
        """End a service as a crash would."""
        self._processes[instance].send_signal(signal.SIGKILL)
        self._processes[instance].wait()

    async def stop(self, instance: str, within: float = LIMIT_SECONDS) -> int:
        """Ask a service to stop; return its exit code."""
        self.signal(instance, signal.SIGTERM)
        return await self.ended(instance, within)

    async def ended(self, instance: str, within: float = LIMIT_SECONDS) -> int:
        """Wait for the end of a service; return its exit code."""
        return await asyncio.to_thread(self._processes[instance].wait, within)

    async def until(
        self, is_so: Callable[[], bool], what: str, within: float = LIMIT_SECONDS, instance: str | None = None
    ) -> None:
        """Wait for a condition; if the service that should bring it about ends, fail at once with its log."""
        limit = time.monotonic() + within
        while not is_so():
            has_ended = instance is not None and not self.is_running(instance)
            if instance is not None and has_ended and not is_so():  # it may have done it just before it ended
                raise AssertionError(f"{instance} ended: {self.service_log(instance)[-SHOWN_CHARACTERS:]}")
            if time.monotonic() > limit:
                raise AssertionError(f"not within {within:g} s: {what}")
            await asyncio.sleep(0.01)

    async def until_logged(self, instance: str, text: str, within: float = LIMIT_SECONDS) -> None:
        """Wait until a service has printed a text."""
        await self.until(lambda: text in self.service_log(instance), f"{instance} logs {text!r}", within, instance)

    def kill_all(self) -> None:
        """Leave no process behind, not even a paused one."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGKILL)
            process.wait()

    def _options(self, service: str, options: tuple[str, ...]) -> tuple[str, ...]:
        if service != "coordinator":
            return ("--team-file", str(self.team_file), *options)
        return options if "--port" in options else ("--port", "0", *options)


def command(service: str, instance: str, *options: str) -> list[str]:
    """What starts a service: the `muster` command."""
    return muster_command([service, "--name", instance, *options])


def environment(folder: Path, url: str, grace_seconds: float = GRACE_SECONDS) -> dict[str, str]:
    """The environment of a service: it imports what the test can import, and finds the broker and the test's folder."""
    return {
        **inherited(),
        "MUSTER_NATS_URL": url,
        "MUSTER_GRACE_SECONDS": f"{grace_seconds:g}",
        "MUSTER_TEST_FOLDER": str(folder),
    }
