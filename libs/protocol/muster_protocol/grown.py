"""How a plan grew where a model was asked, in sentences for people; and which failures others have made good. Pure."""

from collections.abc import Sequence

from muster_protocol.counted import counted
from muster_protocol.fold.state import RequestState, TaskPhase
from muster_protocol.messages import Extended
from muster_protocol.messages.growth import REVIEW, kind_of

NAMED = 5  # tasks in one sentence


def growth_notes(state: RequestState) -> tuple[str, ...]:
    """What a review added, what took the place of a failed task, and why; a review that found nothing says nothing."""
    return tuple(note for grown in state.grown if (note := _note(grown)))


def replaced(state: RequestState) -> frozenset[str]:
    """The tasks that failed, and whose place others have taken: what they lost is no gap."""
    found = (_task_of(grown) for grown in state.grown if kind_of(grown.cause) != REVIEW and _added(grown))
    return frozenset(name for name in found if name in state.tasks and state.tasks[name].phase is TaskPhase.FAILED)


def _task_of(grown: Extended) -> str:
    return grown.cause.partition(":")[2]


def _added(grown: Extended) -> tuple[str, ...]:
    return () if grown.refused is not None else tuple(spec.id for spec in grown.add)


def _note(grown: Extended) -> str:
    reason = grown.refused.message if grown.refused is not None else grown.reason
    why, added = f": {reason}" if reason else "", _added(grown)
    if kind_of(grown.cause) == REVIEW:
        if grown.refused is not None:
            return f"the results were not reviewed{why}"
        return f"a review of the results added {counted(len(added), 'task')} ({_named(added)}){why}" if added else ""
    name = _task_of(grown)
    if not added:
        return f"nothing takes the place of {name}, which failed{why}"
    return f"{_named(added)} took the place of {_named((name, *grown.drop))}{why}"


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - NAMED} more" if len(tasks) > NAMED else ""
    return ", ".join(tasks[:NAMED]) + more
