"""Which tags nobody serves while attempts wait on them, and when waiting costs the rest of the request more. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muster_protocol.attempt_id import AttemptId
from muster_protocol.counted import counted
from muster_protocol.fold import RequestState, last_moment
from muster_protocol.messages import Failure
from muster_protocol.workers.card import FORGOTTEN_SECONDS
from muster_protocol.workers.signs import Signs

LONGEST_WAIT_SECONDS = 60.0  # a worker that is rolled out or restarted is there again by then

Awaited = Mapping[str, Sequence[AttemptId]]  # the dispatched attempts of each tag


class Remark(NamedTuple):
    """A line of the log about workers; `about` is the attempt that waits for them, if it is a single one."""

    text: str
    about: AttemptId | None = None
    worker: str | None = None


class UnservedTags:
    """Since when each tag has had no worker; each is named when that begins, and when it is over."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}

    def look(self, signs: Signs, awaited: Awaited) -> list[Remark]:
        """The lines that are new."""
        live = served_tags(signs)
        lines = [Remark(f"… tag     '{tag}' is served again") for tag in self.since if tag in live]
        self.since = {tag: at for tag, at in self.since.items() if tag not in live and tag in awaited}
        for tag, attempts in awaited.items():
            if tag in live or tag in self.since:
                continue
            self.since[tag] = signs.at
            what = f"{attempts[0]}" if len(attempts) == 1 else counted(len(attempts), "attempt")
            way_out = "start a worker of that tag"
            text = f"… tag     '{tag}' is served by no live worker, and {what} waits for one; {way_out}"
            lines.append(Remark(text, attempts[0] if len(attempts) == 1 else None))
        return lines


def served_tags(signs: Signs) -> set[str]:
    return {tag for card in signs.cards.values() for tag in card.tags}


def tags_in(state: RequestState) -> frozenset[str]:
    """All tags on which the tasks of a request can be given out."""
    specs = (task.spec for task in state.tasks.values())
    tags = {tag for spec in specs for tag in ((spec.worker,) if spec.worker else (spec.tag, *spec.roles))}
    return frozenset(tag for tag in tags if tag is not None)


def wait_seconds(state: RequestState, since: float) -> float:
    """How long an attempt waits for a worker that is gone: half of the time that was left, within bounds.

    The other half is for what does not need that worker. A minute is the most, and the least is as long as it takes
    until a worker that died is missed.
    """
    moment = last_moment(state)
    half = LONGEST_WAIT_SECONDS if moment is None else (moment - since) / 2
    return min(LONGEST_WAIT_SECONDS, max(FORGOTTEN_SECONDS, half))


def given_up(state: RequestState, tag: str, since: float, now: float) -> list[AttemptId]:
    """The attempts on a tag that have waited long enough."""
    found: list[AttemptId] = []
    for task_id, task in state.tasks.items():
        if task.queue != tag or not task.attempts or task.attempts[-1].result is not None or task.success is not None:
            continue
        waited_since = max(since, task.attempts[-1].reserved_at)
        if now - waited_since >= wait_seconds(state, waited_since):
            found.append(state.attempt_id(task_id, len(task.attempts)))
    return found


def nobody(tag: str, seconds: float, others: Iterable[str]) -> Failure:
    """The failure of an attempt for which no worker came; final unless another role can do the task."""
    text = f"no live worker has served the tag '{tag}' for {seconds:.0f} s"
    return Failure(error_class="resource", message=text, is_final=not list(others))
