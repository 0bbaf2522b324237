"""What a request lacks that has no answer though its deadline has passed, in words for whoever waits. Pure."""

from muster_protocol.fold.state import RequestState, TaskPhase
from muster_protocol.sender import shown_name
from muster_protocol.status import Seen, few
from muster_protocol.workers.unserved import unserved_tag

_NOT_DONE = (TaskPhase.READY, TaskPhase.RESERVED, TaskPhase.DELAYED, TaskPhase.AWAITING_RETRY)


def missing(state: RequestState, team: str, seen: Seen) -> str:
    """Who does not answer, and which tasks wait for which workers."""
    if state.owner is not None:
        who = f"{shown_name('supervisor', state.owner)} has taken it and gives no answer"
    elif state.term:
        who = f"its supervisor stopped, and no other of team {team!r} has taken it"
    else:
        who = f"no supervisor of team {team!r} has taken it"
    return "; ".join([who, *_waiting_tasks(state, seen)])


def _waiting_tasks(state: RequestState, seen: Seen) -> list[str]:
    """The tasks that have begun to wait, by the tag that they wait for."""
    by_tag: dict[str, list[str]] = {}
    unserved: set[str] = set()
    for task_id, task in state.tasks.items():
        if task.phase not in _NOT_DONE:
            continue
        lacking = None if seen.live_tags is None else unserved_tag(task, seen.live_tags)
        tag = lacking or task.queue or " or ".join((*task.spec.match_all, *task.spec.match_some))
        by_tag.setdefault(tag, []).append(task_id)
        if lacking is not None:
            unserved.add(tag)
    return [
        f"{few(names)} {'waits' if len(names) == 1 else 'wait'} for a worker with tag '{tag}'"
        + (", and none is alive" if tag in unserved else "")
        for tag, names in by_tag.items()
    ]
