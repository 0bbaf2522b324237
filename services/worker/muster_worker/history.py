"""What is known about a task before it is worked on: done already, or taken in vain too often."""

from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_bus.read import read_subject
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry
from muster_protocol.messages import Answer, HandedBack, Result, ResultStatus, Task

FRESH_SECONDS = 3.0  # what comes later than this after its reservation is looked up
MAX_TAKES = 3  # takes without a result or a clean hand-back; the next one gives up


def is_suspect(task: Task, delivery: int, now: float, connected_at: float, ack_wait: float) -> bool:
    """Whether this may be a second copy, so that somebody may have done it: all times are the broker's."""
    is_again = delivery > 1
    is_forgotten = task.reserved_at < connected_at  # a broker that came back may not know what it delivered
    is_old = now - task.reserved_at > min(FRESH_SECONDS, ack_wait)  # it lay in our socket while we hung, and a peer …
    return is_again or is_forgotten or is_old


async def is_done_already(bus: Bus, task: Task) -> bool:
    """Read the log from the task's reservation on, at the leader: a stored result is never made again."""
    entries = await read_log(bus, task.request_id, task.reserved_sequence, from_leader=True)
    return any(settles(entry, task) for entry in entries)


def settles(entry: Entry, task: Task) -> bool:
    """Whether this entry leaves nothing to do: the answer, a result of the attempt, or a success of the task."""
    match entry.body:
        case Answer():
            return h.is_owner(entry.sender)
        case Result() as result if result.task_id == task.task_id:
            return result.attempt == task.attempt or result.status is ResultStatus.DONE
        case _:
            return False


async def is_poison(bus: Bus, task: Task, delivery: int) -> bool:
    """Counted from the broker's own deliveries, less those that were handed back cleanly."""
    if delivery <= MAX_TAKES:
        return False
    handed_back = 0
    for raw in await read_subject(bus.nc, "EVENTS", subjects.events(task.request_id), from_leader=True):
        if raw.headers.get(h.KIND) == HandedBack.kind:
            try:
                note = HandedBack.read(raw.data)
            except Invalid:
                continue  # whoever wrote that, it handed nothing back
            handed_back += (note.task_id, note.attempt) == (task.task_id, task.attempt)
    return delivery - 1 - handed_back >= MAX_TAKES
