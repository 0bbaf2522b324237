"""The processes: brokers and services that are killed, paused, stopped and started again."""

import asyncio
import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

from muster_bus.broker.embedded import Server, is_free
from muster_testing.cluster import Cluster
from muster_testing.proxy import Proxy
from muster_testing.services import command, environment
from tests.chaos.disks import Disk
from tests.chaos.ledger import Death, Ledger, Outage

ROOT = Path(__file__).parent.parent.parent
READY_SECONDS = 40.0  # the broker may be away meanwhile, and the machine busy
GRACE_SECONDS = 6.0
STOP_SECONDS = GRACE_SECONDS + 12.0  # the stop's own limits: service, connection and exporter
WATCH_SECONDS = 0.05
BROKEN = ("Traceback (most recent call last)", "was never awaited", "was never retrieved")
PORTS = range(18_000, 30_000)  # the system gives none of these away while a service is down
DISK_BYTES = 512 * 1024 * 1024  # what a run stores is a tenth of it
TAIL = 1500  # characters of a dead service's log that are shown
SERVICES = {"s": "supervisor", "w": "worker", "c": "coordinator"}  # by the first letter of a name
# A run begins somewhere else than the one beside it.
_PORTS = itertools.islice(itertools.cycle(PORTS), os.getpid() % len(PORTS), None)


class Process:
    """One service, under whatever process it has now."""

    def __init__(self, name: str, options: tuple[str, ...], folder: Path, wires: list[Proxy], ledger: Ledger) -> None:
        self.name = name
        self.service = SERVICES[name[0]]
        self.is_busy = False  # a fault has it
        self.is_damaged = False  # another has its wires, one to each broker
        self.wires = wires
        self.port = next(port for port in _PORTS if is_free(port))  # of its probes
        self._options = (*options, "--port", str(self.port)) if self.service == "coordinator" else options
        self._environment = environment(folder, ",".join(wire.url for wire in wires), GRACE_SECONDS)
        if self.service != "coordinator":
            self._environment["MUSTER_HEALTH_PORT"] = str(self.port)
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
        while self._is_meant_to_run and "ready:" not in self._printed():
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
                command(self.service, instance, *self._options),
                stdout=output,
                stderr=output,
                env=self._environment,
            )
        self._ledger.names[self._process.pid] = instance
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
        """What it printed that no service should ever print, from its first process to its last."""
        printed = self._log.read_text(errors="replace") if self._log.exists() else ""
        found = {word: printed.count(word) for word in BROKEN if word in printed}
        return [
            Death(self.name, f"printed {count} × {word!r}\n{printed[printed.index(word) - 200 :][:TAIL]}")
            for word, count in found.items()
        ]

    def _printed(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def _tail(self) -> str:
        return self._printed()[-TAIL:]


class Processes:
    """All processes of one run."""

    def __init__(self, folder: Path, ledger: Ledger, *, is_cluster: bool) -> None:
        self.ledger = ledger
        self._folder = folder
        self.cluster = Cluster(folder / "brokers") if is_cluster else None
        self.brokers = self.cluster.servers if self.cluster else [Server(folder / "broker")]
        self.disks = [Disk(broker.folder / "jetstream") for broker in self.brokers]
        self.services: list[Process] = []

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.brokers)

    @property
    def have_disks(self) -> bool:
        return all(disk.is_mounted for disk in self.disks)

    async def start_brokers(self) -> None:
        """They find their ports; only then the commands of the services are known."""
        for disk in self.disks:
            disk.mount(DISK_BYTES)
        await asyncio.gather(*(server.start() for server in self.brokers))
        team = ("--team-file", str(self._folder / "team.yaml"))
        options: dict[str, tuple[str, ...]] = {
            **dict.fromkeys(("s1", "s2"), team),
            **{f"w{n}": (*team, "--slots", str(4 * n)) for n in (1, 2, 3)},
            **dict.fromkeys(("c1", "c2"), ()),
        }
        self.services = [await self._process(name, given) for name, given in options.items()]

    async def _process(self, name: str, options: tuple[str, ...]) -> Process:
        """A service that reaches each broker through a proxy of its own."""
        wires = [Proxy(server.port) for server in self.brokers]
        await asyncio.gather(*(wire.open() for wire in wires))
        return Process(name, options, self._folder, wires, self.ledger)

    async def start_services(self) -> None:
        await asyncio.gather(*(service.start() for service in self.services if not service.is_running))

    async def watch(self) -> None:
        """Start again what died by itself, so that one death does not hide the next."""
        while True:
            for service in self.services:
                if not service.look() and not service.is_busy:
                    service.is_busy = True
                    await service.start()
                    service.is_busy = False
            await asyncio.sleep(WATCH_SECONDS)

    async def stop_services(self) -> None:
        await asyncio.gather(*(service.stop() for service in self.services))

    async def close(self) -> None:
        for service in self.services:
            service.signal(signal.SIGCONT)
            service.kill()
        await asyncio.gather(*(wire.close() for service in self.services for wire in service.wires))
        await asyncio.gather(*(server.stop() for server in self.brokers))
        for disk in self.disks:
            disk.unmount()

    def was_away(self, who: str, began: float, process: int = 0, *, is_death: bool = False) -> None:
        self.ledger.outages.append(Outage(who, began, time.time(), process, is_death))
