"""What is known about one request while it runs: its log, folded, and which worker has which task. Pure."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import assert_never

from muster_cli.view.news import News, NewsKind
from muster_cli.view.plain import plain
from muster_client.log_lines import growth_text
from muster_protocol.counted import counted
from muster_protocol.fold import Entry, RequestState, TaskPhase, apply
from muster_protocol.messages import (
    Answer,
    CalledBack,
    ConflictFound,
    Decision,
    Dispatched,
    Event,
    Extended,
    HandedBack,
    LogBody,
    PlanRecorded,
    Progress,
    Question,
    Refused,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Started,
    Taken,
    ToolUsed,
)
from muster_protocol.plan import ordered
from muster_protocol.questions import words_of
from muster_protocol.sender import worker_name
from muster_protocol.status import Seen, failure_text

PROGRESS_SECONDS = 1.0  # a role may report every step: of each task one line in this time


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which worker has a task, since when by the clock of the broker, and the last progress that it reported."""

    worker: str
    attempt: int
    since: float
    progress: str = ""


@dataclass(slots=True)
class Board:
    """Feed it entries and events in the order in which they come."""

    state: RequestState
    assignments: dict[str, Assignment] = field(default_factory=dict[str, Assignment])
    progress_shown_at: dict[str, float] = field(default_factory=dict[str, float])

    def seen(self, now: float) -> Seen:
        """What the events said beside the log; which tags are served is not known here."""
        started = {
            self.state.attempt_id(task_id, assignment.attempt): assignment.worker
            for task_id, assignment in self.assignments.items()
        }
        return Seen(now, started)

    def apply_entry(self, entry: Entry) -> News | None:
        """Fold an entry; returns what is new."""
        if entry.sequence <= self.state.last_sequence:
            return None
        previous, described = self.state.owner, self._description_of(entry.body)
        growing = set(self.state.growing)
        apply(self.state, entry)
        match entry.body:
            case Taken() as taken:
                news = self._taken(taken, previous)
            case PlanRecorded() as plan_entry if self.state.plan_entry is plan_entry:
                news = News(NewsKind.STAGE, f"plan    {counted(len(self.state.tasks), 'task')}")
            case Result() as result:
                news = self._result(result)
            case Revision() as revision:
                news = News(NewsKind.RETRY, _next_attempt(revision, self._called(revision.task_id), described))
            case (Question() | Decision()) as people:
                news = self._of_people(people)
            case Answer() as answer if self.state.answer is answer:
                news = News(NewsKind.STAGE, f"answer  {answer.status.value}")
            case Extended() as extended:
                is_told = extended.add or extended.refused is not None  # a look that finds nothing missing is no news
                has_grown = is_told and extended.cause in growing - self.state.growing.keys()
                news = News(NewsKind.STAGE, f"plan    {growth_text(extended)}") if has_grown else None
            case PlanRecorded() | Answer() | Reserved() | Dispatched():
                news = None
            case _:
                assert_never(entry.body)
        return news

    def _of_people(self, body: Question | Decision) -> News | None:
        if isinstance(body, Question):
            return self._asked(body)
        if body.decision == "reassign" and body.task_id is not None:
            self.assignments.pop(body.task_id, None)
        return News(NewsKind.DECISION, words_of(body))

    def apply_event(self, event: Event, now: float) -> News | None:
        """Take note of an event; returns what is new."""
        match event:
            case Started():
                return self._started(event, now)
            case HandedBack():
                self.assignments.pop(event.task_id, None)
                why = f": {event.why}" if event.why else ""
                text = f"{self._called(event.task_id)}  handed back by {name_of(event.worker)}{why}"
                return News(NewsKind.HANDED_BACK, text)
            case ConflictFound():
                text = f"{self._called(event.task_id)}  {event.what}: {event.first} and {event.second}"
                return News(NewsKind.CONFLICT, text)
            case Progress():
                return self._progress(event.task_id, event.text, now)
            case ToolUsed():
                how = f"used {event.tool}" if event.error is None else f"{event.tool} failed: {event.error}"
                return self._progress(event.task_id, how, now)
            case Refused() | CalledBack():
                return None  # a conflict tells of the first, if it is one; the second comes after the answer
            case _:
                assert_never(event)

    def _taken(self, taken: Taken, previous: str | None) -> News:
        if taken.handed_back:
            return News(NewsKind.STAGE, f"handed back by supervisor-{taken.instance}")
        if previous is not None and previous != taken.instance:
            return News(NewsKind.TAKEN_OVER, f"taken over by supervisor-{taken.instance}")
        return News(NewsKind.STAGE, f"taken   by supervisor-{taken.instance}")

    def _asked(self, question: Question) -> News | None:
        """A question that counts, and how to reply."""
        asked = self.state.questions.get(question.id)
        if asked is None or asked.question is not question:
            return None
        how = f"muster reply {self.state.request_id} {'|'.join(question.choices) or 'VALUE'}"
        return News(NewsKind.QUESTION, f"{question.text}  `{how}`")

    def _description_of(self, body: LogBody) -> str | None:
        """What the task of a revision is to do, before that."""
        task = self.state.tasks.get(body.task_id) if isinstance(body, Revision) else None
        return task.description if task else None

    def _started(self, event: Started, now: float) -> News | None:
        if self._is_done(event.task_id) or self._has_ended(event.task_id, event.attempt):
            return None
        before = self.assignments.get(event.task_id)
        if before is not None and (before.worker, before.attempt) == (event.worker, event.attempt):
            return None  # it was asked whether it still runs
        self.assignments[event.task_id] = Assignment(event.worker, event.attempt, now)
        again = "" if before is None or before.worker == event.worker else f", after {name_of(before.worker)}"
        return News(NewsKind.STARTED, f"{self._called(event.task_id)}  {name_of(event.worker)} as {event.role}{again}")

    def _progress(self, task_id: str, text: str, now: float) -> News | None:
        text = _line(text)
        if self._is_done(task_id) or not text:
            return None
        if (assignment := self.assignments.get(task_id)) is not None:
            self.assignments[task_id] = replace(assignment, progress=text)
        if now - self.progress_shown_at.get(task_id, -inf) < PROGRESS_SECONDS:
            return None
        self.progress_shown_at[task_id] = now
        return News(NewsKind.PROGRESS, f"{self._called(task_id)}  {text}")

    def _called(self, task_id: str) -> str:
        """What people call it, as the plan above shows it: an item of a map by what it is."""
        task = self.state.tasks.get(task_id)
        return plain(task.spec.name) if task else task_id

    def _is_done(self, task_id: str) -> bool:
        """An event may arrive after the log's entry about what followed it."""
        task = self.state.tasks.get(task_id)
        return task is not None and task.phase is TaskPhase.DONE

    def _has_ended(self, task_id: str, attempt: int) -> bool:
        task = self.state.tasks.get(task_id)
        known = task.attempts[attempt - 1 : attempt] if task else []
        return any(one.result is not None for one in known)

    def _result(self, result: Result) -> News:
        name = self._called(result.task_id)
        if not self.state.is_counted(result):
            text = f"{name}  a second result of attempt {result.attempt}, not counted"
            return News(NewsKind.NOT_COUNTED, text)
        self.assignments.pop(result.task_id, None)
        if result.status is ResultStatus.DONE:
            return News(NewsKind.DONE, f"{name}  {result.seconds:.1f} s by {name_of(result.worker)}")
        reason = failure_text(result.error) if result.error else "no reason given"
        return News(NewsKind.FAILED, f"{name}  attempt {result.attempt} {result.status.value}: {reason}")


def _line(text: str) -> str:
    return " ".join(text.split())[:160]


def name_of(worker: str) -> str:
    """A worker's name as the logs write it; where an owner gave up waiting there is none."""
    return worker_name(worker) if worker else "nobody reported"


def in_order(state: RequestState) -> list[tuple[str, int]]:
    """The tasks as a tree is read: each after what it waits for, with its depth in the graph."""
    depths: dict[str, int] = {}
    needs = {task_id: task.spec.dependencies for task_id, task in state.tasks.items()}
    for task_id in ordered(needs):
        depths[task_id] = max((depths[name] + 1 for name in needs[task_id]), default=0)
    return sorted(depths.items(), key=lambda pair: pair[1])


def _next_attempt(revision: Revision, task: str, described: str | None) -> str:
    """What will be tried next, or why nothing will."""
    name = f"{task}  attempt {revision.attempt}"
    if revision.gives_up:
        return f"{name} is not made: {revision.reason}"
    return name if revision.description == described else f"{name} with a better description"
