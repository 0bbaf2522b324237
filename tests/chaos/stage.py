"""The processes: brokers and services that are killed, paused, stopped and started again."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from muster_bus.embedded import Cluster, Server, free_port
from tests.chaos.ledger import Death, Ledger, Outage

ROOT = Path(__file__).parent.parent.parent
READY_SECONDS = 40.0  # the broker may be away meanwhile, and the machine busy
GRACE_SECONDS = 6.0
STOP_SECONDS = GRACE_SECONDS + 12.0  # the stop's own limits: service, connection and exporter
WATCH_SECONDS = 0.05
BROKEN = ("Traceback (most recent call last)", "was never awaited", "was never retrieved")
TAIL = 1500  # characters of a dead service's log that are shown


class Player:
    """One service, under whatever process it has now."""

    def __init__(
        self, name: str, service: str, options: tuple[str, ...], folder: Path, url: str, ledger: Ledger
    ) -> None:
        self.name = name
        self.service = service
        self.is_busy = False  # a fault has it
        self._command = [sys.executable, "-m", "tests.serve", service]
        self._options = ("--url", url, "--team", str(folder / "team.yaml"), "--grace", str(GRACE_SECONDS), *options)
        self._folder = folder
        self._ledger = ledger
        self._process: subprocess.Popen[bytes] | None = None
        self._is_meant_to_run = False
        self._log = folder / f"{name}.log"
        self._from = 0
        self._generation = 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self, *, is_renamed: bool = False) -> None:
        """Start a process, as itself or under a new name, and wait until it says that it is ready."""
        self._generation += 1
        self._spawn(f"{self.name}-{self._generation}" if is_renamed else self.name)
        limit = time.monotonic() + READY_SECONDS
        while self._is_meant_to_run and "ready:" not in self._said():
            if time.monotonic() > limit:
                self._ledger.deaths.append(
                    Death(self.name, f"was not ready within {READY_SECONDS:g} s\n{self._tail()}")
                )
                return
            await asyncio.sleep(0.05)

    def _spawn(self, instance: str) -> None:
        self._from = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, instance, *self._options],
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env={**os.environ, "TEST_FOLDER": str(self._folder)},
            )
        self._is_meant_to_run = True

    def kill(self) -> None:
        self._is_meant_to_run = False
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait()

    async def stop(self) -> None:
        """Ask it to stop; it must, with 0, within the grace time."""
        self._is_meant_to_run = False
        if self._process is None or not self.is_running:
            return
        self._process.terminate()
        try:
            code = await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._ledger.deaths.append(Death(self.name, f"did not stop within {STOP_SECONDS:g} s\n{self._tail()}"))
            self.kill()
            return
        if code != 0:
            self._ledger.deaths.append(Death(self.name, f"stopped with {code} instead of 0\n{self._tail()}"))

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(number)

    def look(self) -> bool:
        """Whether it is as it should be; a death of its own is written down once."""
        if not self._is_meant_to_run or self.is_running:
            return True
        self._is_meant_to_run = False
        code = self._process.returncode if self._process is not None else None
        self._ledger.deaths.append(Death(self.name, f"ended by itself with {code}\n{self._tail()}"))
        return False

    def broken(self) -> list[Death]:
        """What it said that no service should ever have to say, from its first process to its last."""
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        found = {word: said.count(word) for word in BROKEN if word in said}
        return [
            Death(self.name, f"said {count} × {word!r}\n{said[said.index(word) - 200 :][:TAIL]}")
            for word, count in found.items()
        ]

    def _said(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def _tail(self) -> str:
        return self._said()[-TAIL:]


class DemoEnvironment:
    """All processes of one run."""

    def __init__(self, folder: Path, ledger: Ledger, *, is_cluster: bool) -> None:
        self.ledger = ledger
        self._folder = folder
        self.cluster = Cluster(folder / "brokers") if is_cluster else None
        self.brokers = self.cluster.servers if self.cluster else [Server(folder / "broker")]
        self.players: list[Player] = []

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.brokers)

    def _player(self, name: str, service: str, *options: str) -> Player:
        return Player(name, service, options, self._folder, self.url, self.ledger)

    async def start_brokers(self) -> None:
        """They find their ports; then it is known what to tell the services."""
        await asyncio.gather(*(server.start() for server in self.brokers))
        self.players = [
            *(self._player(f"s{n}", "supervisor") for n in (1, 2)),
            *(self._player(f"w{n}", "worker", "--slots", str(4 * n)) for n in (1, 2, 3)),
            self._player("c1", "coordinator", "--port", str(free_port())),
        ]

    async def start_services(self) -> None:
        await asyncio.gather(*(player.start() for player in self.players if not player.is_running))

    async def watch(self) -> None:
        """Start again what died by itself, so that one death does not hide the next."""
        while True:
            for player in self.players:
                if not player.look() and not player.is_busy:
                    player.is_busy = True
                    await player.start()
                    player.is_busy = False
            await asyncio.sleep(WATCH_SECONDS)

    async def stop_services(self) -> None:
        await asyncio.gather(*(player.stop() for player in self.players))

    async def close(self) -> None:
        for player in self.players:
            player.signal(signal.SIGCONT)
            player.kill()
        await asyncio.gather(*(server.stop() for server in self.brokers))

    def was_away(self, who: str, began: float, process: int = 0) -> None:
        self.ledger.outages.append(Outage(who, began, time.time(), process))
