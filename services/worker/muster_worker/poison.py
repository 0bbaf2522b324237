"""When a task is poison: it was taken several times without a result, so it may crash its worker."""

from muster_bus.connection import Bus
from muster_bus.receive import open_live
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import HandedBack, Task
from muster_protocol.retry import MAX_TAKES

_HAND_BACKS = {HandedBack.kind: HandedBack}


async def is_poison(bus: Bus, task: Task, delivery: int) -> bool:
    """Whether the deliveries before this one, less those that were handed back cleanly, are too many."""
    if delivery <= MAX_TAKES:
        return False
    handed_back = 0
    for raw in await bus.read(subjects.events(task.request_id), from_leader=True):
        try:
            note = open_live(raw, _HAND_BACKS).body
        except Invalid:
            continue  # another kind of event, or one that counts for nothing
        handed_back += note.attempt_id == task.attempt_id
    return delivery - 1 - handed_back >= MAX_TAKES
