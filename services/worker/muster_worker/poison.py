"""When a task is poison: it was taken several times without a result, so it may crash its worker."""

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.log import read_log
from muster_bus.receive import open_live
from muster_bus.turns import TurnsOfTask
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import is_stopped
from muster_protocol.messages import HandedBack, Result, Task
from muster_protocol.retry import MAX_TAKES

_HAND_BACKS = {HandedBack.kind: HandedBack}


async def is_poison(bus: Bus, task: Task, delivery: Delivery) -> bool:
    """Whether the deliveries before this one, less those that ended cleanly without a result, are too many."""
    if delivery.number <= MAX_TAKES:
        return False
    clean = await _handed_back(bus, task, delivery.sequence) | await _stopped(bus, task, delivery.sequence)
    turns = await TurnsOfTask(bus, task.request_id, task.task_id).read()
    clean |= turns.productive_takes(task.attempt, delivery.sequence)  # it has come further
    return delivery.number - 1 - len(clean) >= MAX_TAKES


async def _handed_back(bus: Bus, task: Task, sequence: int) -> set[tuple[str, int]]:
    """The takes of this message that were handed back: who had which delivery."""
    found: set[tuple[str, int]] = set()
    for raw in await bus.read(subjects.events(task.request_id), from_leader=True):
        try:
            note = open_live(raw, _HAND_BACKS).body
        except Invalid:
            continue  # another kind of event, or one that counts for nothing
        if note.attempt_id == task.attempt_id and note.task_sequence in (sequence, 0):
            found.add((note.worker, note.delivery))
    return found


async def _stopped(bus: Bus, task: Task, sequence: int) -> set[tuple[str, int]]:
    """The takes of this message that were told to stop and did."""
    found: set[tuple[str, int]] = set()
    for entry in await read_log(bus, task.request_id, task.reserved_sequence, from_leader=True):
        match entry.body:
            case Result() as result if result.attempt_id == task.attempt_id and is_stopped(entry.sender, result):
                if result.task_sequence in (sequence, 0):
                    found.add((result.worker, result.delivery))
            case _:
                pass
    return found
