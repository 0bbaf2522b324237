"""What a watcher has heard about one request: its log, folded, and who is at work on what. Pure."""

from dataclasses import dataclass, field

from muster_protocol.log import Entry, RequestState, TaskStatus
from muster_protocol.messages import (
    Answer,
    ConflictFound,
    Decision,
    Event,
    HandedBack,
    PlanMade,
    Result,
    ResultStatus,
    Revision,
    Started,
    Taken,
)
from muster_protocol.plan import ordered


@dataclass(frozen=True, slots=True)
class Hand:
    """Who works on a task, and since when by the watcher's clock."""

    worker: str
    attempt: int
    since: float


@dataclass(slots=True)
class Board:
    """Feed it entries and events in the order in which they come."""

    state: RequestState
    hands: dict[str, Hand] = field(default_factory=dict[str, Hand])
    counted: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def entered(self, entry: Entry) -> str | None:
        """Fold an entry; returns a line about it when it is news."""
        if entry.sequence <= self.state.last_sequence:
            return None
        previous = self.state.owner
        self.state.apply(entry)
        match entry.body:
            case Taken() as taken:
                news = self._taken(taken, previous)
            case PlanMade() as made if self.state.made is made:
                news = f"plan    {len(self.state.tasks)} tasks"
            case Result() as result:
                news = self._result(result)
            case Revision() as revision:
                news = f"↻ {revision.task_id}  attempt {revision.attempt} with a better description"
            case Decision() as decision:
                news = f"■ {decision.decision} by {decision.by} {decision.reason}".rstrip()
            case Answer() as answer if self.state.answer is answer:
                news = f"answer  {answer.status.value}"
            case _:
                news = None
        return news

    def heard(self, event: Event, now: float) -> str | None:
        match event:
            case Started():
                return self._started(event, now)
            case HandedBack():
                self.hands.pop(event.task_id, None)
                return f"↩ {event.task_id}  handed back by {name_of(event.worker)}"
            case ConflictFound():
                return f"⚠ {event.task_id}  {event.what}: {name_of(event.first)} and {name_of(event.second)}"
            case _:
                return None

    def _taken(self, taken: Taken, previous: str | None) -> str:
        if taken.handed_back:
            return f"handed back by supervisor-{taken.instance}"
        if previous is not None and previous != taken.instance:
            return f"⇄ taken over by supervisor-{taken.instance}"
        return f"taken   by supervisor-{taken.instance}"

    def _started(self, event: Started, now: float) -> str | None:
        task = self.state.tasks.get(event.task_id)
        if task is not None and task.status is TaskStatus.DONE:
            return None  # events and log come by two ways, and may pass each other
        before = self.hands.get(event.task_id)
        self.hands[event.task_id] = Hand(event.worker, event.attempt, now)
        again = "" if before is None else f", after {name_of(before.worker)}"
        return f"→ {event.task_id}  {name_of(event.worker)} as {event.role}{again}"

    def _result(self, result: Result) -> str | None:
        key = (result.task_id, result.attempt)
        if key in self.counted:
            return f"≈ {result.task_id}  a second result of attempt {result.attempt}, not counted"
        self.counted.add(key)
        self.hands.pop(result.task_id, None)
        if result.status is ResultStatus.DONE:
            return f"✓ {result.task_id}  {result.seconds:.1f} s by {name_of(result.worker)}"
        reason = result.error.message if result.error else result.status.value
        return f"✗ {result.task_id}  attempt {result.attempt}: {' '.join(reason.split())[:160]}"


def name_of(worker: str) -> str:
    """A worker's name as the logs write it."""
    return f"worker-{worker}"


def in_order(state: RequestState) -> list[tuple[str, int]]:
    """The tasks as a tree is read: each after what it waits for, with its depth in the graph."""
    depths: dict[str, int] = {}
    needs = {task_id: task.spec.dependencies for task_id, task in state.tasks.items()}
    for task_id in ordered(needs):
        depths[task_id] = max((depths[name] + 1 for name in needs[task_id]), default=0)
    return sorted(depths.items(), key=lambda pair: pair[1])
