"""Faults of wires and disks: cuts, lines that a broker says, changed bytes, a disk that is full."""

import asyncio
import time

from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from muster_protocol.subjects import STREAMS
from tests.chaos.disks import Disk
from tests.chaos.ledger import overlap
from tests.chaos.probes import recover
from tests.chaos.processes import Process, Processes
from tests.chaos.traffic import DEADLINE_SECONDS

CUT_SECONDS = (0.5, 5.0)  # past the timeouts of some tasks: the worker finishes them after they were given up
LINES = (  # each breaks a connection, or leaves it open and broken
    b"-ERR 'Maximum Subscriptions Exceeded'\r\n",
    b"-ERR 'Stale Connection'\r\n",
    b"-ERR \r\n",
    b"INFO []\r\n",
    b"MSG a 1 -99\r\nx\r\n",
    b"\xff\xfe\xfd\r\n",
)
CHANGES = (5, 60)
CHANGES_SECONDS = 4.0  # then the wire is sound again, whatever is left
FULL_SECONDS = (1.0, 5.0)
DRAINED_SECONDS = DEADLINE_SECONDS + 10.0  # the last deadline, and time to drain
ASK_SECONDS = 2.0


def within(bounds: tuple[float, float], part: float) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) * part


async def cut(processes: Processes, service: Process, extent: float) -> None:
    """Take the wires of one service away, while it goes on."""
    began, process = time.time(), service.pid
    await asyncio.gather(*(wire.close() for wire in service.wires))
    try:
        await asyncio.sleep(within(CUT_SECONDS, extent))
    finally:
        await asyncio.gather(*(wire.open() for wire in service.wires))
        processes.was_away(service.name, began, process)
    await recover(processes, service, "a cut")


async def say_line(processes: Processes, service: Process, extent: float) -> None:
    """Let the brokers say something to one service that ends its connection, or should."""
    line = LINES[int(extent * len(LINES))]
    began, process = time.time(), service.pid
    for wire in service.wires:
        wire.insert(line)
    processes.was_away(service.name, began, process)
    await recover(processes, service, f"the line {line!r}")


async def change_bytes(processes: Processes, service: Process, extent: float) -> None:
    """Damage what passes between one service and its brokers, either way."""
    began, process = time.time(), service.pid
    for number, wire in enumerate(service.wires):
        wire.change_bytes(int(within(CHANGES, extent)), int(extent * 1e6) + number, between=5)
    await asyncio.sleep(CHANGES_SECONDS)
    for wire in service.wires:
        wire.change_bytes(0, 0)
    processes.ledger.damages.append((began, time.time()))
    processes.was_away(service.name, began, process)
    await recover(processes, service, "changed bytes")


async def fill_disk(processes: Processes, broker: Server, disk: Disk, extent: float) -> None:
    """Fill a broker's disk; what it does not store until it is restarted, nobody had its word for."""
    began = time.time()
    try:
        await disk.fill(within(FULL_SECONDS, extent))
    finally:
        disk.free()
        await broker.stop()
        await broker.start()
        processes.was_away("broker", began)


async def drain(processes: Processes, bus: Bus) -> None:
    """All that is in the queues now must be gone in time, also what nobody waits for any more."""
    ledger, began = processes.ledger, time.time()
    last = {stream: (await _places(bus, stream))[1] for stream in (STREAMS["requests"], STREAMS["tasks"])}
    while last:
        for stream, place in list(last.items()):
            if (await _places(bus, stream))[0] > place:
                del last[stream]
        away = overlap([*ledger.away("broker"), *ledger.away("s"), *ledger.away("w")], began, time.time())
        if time.time() - began - away > DRAINED_SECONDS:
            ledger.undrained += [f"{stream} still holds something up to #{place}" for stream, place in last.items()]
            return
        await asyncio.sleep(0.5)


async def _places(bus: Bus, stream: str) -> tuple[int, int]:
    """The first and the last place of what a stream holds; asked until the broker answers."""
    while True:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                state = (await bus.nc.jetstream(timeout=ASK_SECONDS).stream_info(stream)).state
            return (state.first_seq if state.messages else state.last_seq + 1), state.last_seq
        except (MusterError, TimeoutError, OSError):
            await asyncio.sleep(0.2)
