"""What the runner itself knows: what it sent and whether the broker's word for it came, and what it did to whom."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

UNSENT_SECONDS = 1.0  # what a process says in the background is with the broker by then


class Word(StrEnum):
    """What the broker said to a publish."""

    OK = "ok"
    UNKNOWN = "unknown"  # no word came: stored or not


@dataclass(slots=True)
class Sent:
    """One request, however many copies of it were sent. Times are seconds since 1970."""

    id: str
    deadline_seconds: float
    sent_at: float
    word: Word = Word.UNKNOWN
    acked_at: float = 0.0
    cancelled_at: float | None = None  # when the word for the cancel came
    is_valid: bool = True

    def acked(self, at: float) -> None:
        """The first copy counts: the deadline runs from the oldest."""
        if self.word is Word.UNKNOWN:
            self.word, self.acked_at = Word.OK, at


@dataclass(frozen=True, slots=True)
class Litter:
    """A message that nobody can use."""

    what: str
    stream: str
    sequence: int | None  # None: no word came
    has_error: bool = True  # on `errors` itself it makes none


@dataclass(frozen=True, slots=True)
class Rivals:
    """Two messages with one id and different bodies, by their places in REQUESTS: one of them does not count."""

    request: str
    sequences: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TaskCopy:
    """A second message of an attempt, stored by hand."""

    key: tuple[str, str, int]  # request, task, attempt
    what: str
    sequence: int
    stored_at: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """A service whose connection was damaged, and when it was ready again: infinite if it was not while we looked."""

    who: str
    what: str
    ended: float
    ready: float


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which somebody could not do its work because of us."""

    who: str
    began: float
    ended: float
    process: int = 0
    is_death: bool = False  # the process ended, another came


@dataclass(frozen=True, slots=True)
class Death:
    """A service that ended though nobody ended it, ended badly when asked to, or broke inside and went on."""

    who: str
    text: str


@dataclass(slots=True)
class Ledger:
    """Everything that the runner did."""

    sent: dict[str, Sent] = field(default_factory=dict[str, Sent])
    bare: set[str] = field(default_factory=set[str])  # goals of requests that were sent without an id
    copies: int = 0
    large: int = 0
    twice: int = 0  # requests whose id came twice without a message id, so that the broker dropped none of the two
    rivals: list[Rivals] = field(default_factory=list[Rivals])
    litter: list[Litter] = field(default_factory=list[Litter])
    outages: list[Outage] = field(default_factory=list[Outage])
    deaths: list[Death] = field(default_factory=list[Death])
    names: dict[int, str] = field(default_factory=dict[int, str])  # of each process: the instance that it was
    task_copies: list[TaskCopy] = field(default_factory=list[TaskCopy])
    recoveries: list[Recovery] = field(default_factory=list[Recovery])
    damages: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  # when bytes were changed
    lags: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  # when nobody got the processor
    undrained: list[str] = field(default_factory=list[str])  # what a broker with a full disk left behind
    faults: list[str] = field(default_factory=list[str])

    def away(self, who: str, *, padding: float = 0.0, process: int = 0) -> list[tuple[float, float]]:
        """When one was away: its name's beginning, or one of its processes alone."""
        return [
            (outage.began, outage.ended + padding)
            for outage in self.outages
            if outage.who.startswith(who) and process in (0, outage.process)
        ]

    def all_away(self, who: str, *, padding: float = 0.0) -> list[tuple[float, float]]:
        """When all of a service were away: of those whose names begin so, each one."""
        names = sorted({outage.who for outage in self.outages if outage.who.startswith(who)} | self.members(who))
        common = [(-math.inf, math.inf)]
        for name in names:
            own = self.away(name, padding=padding)
            common = [
                (max(start, began), min(end, ended))
                for start, end in common
                for began, ended in own
                if max(start, began) < min(end, ended)
            ]
        return common if names else []

    def members(self, who: str) -> set[str]:
        """The services whose names begin so, without what was added to the name of a renamed process."""
        return {name.split("-")[0] for name in self.names.values() if name.startswith(who)}

    def recovering(self, who: str) -> list[tuple[float, float]]:
        """When one whose wires were whole again was not ready yet."""
        return [(found.ended, found.ready) for found in self.recoveries if found.who.startswith(who)]

    def starved(self, *, padding: float = 0.0) -> list[tuple[float, float]]:
        return [(began, ended + padding) for began, ended in self.lags]

    def deaths_of(self, who: str) -> list[tuple[float, float]]:
        """When those whose names begin so were killed, and a moment before: what they had not sent went with them."""
        return [
            (outage.began - UNSENT_SECONDS, outage.began + UNSENT_SECONDS)
            for outage in self.outages
            if outage.is_death and outage.who.startswith(who)
        ]


def overlap(intervals: Iterable[tuple[float, float]], began: float, ended: float) -> float:
    """How much of a time is covered by at least one interval."""
    covered, reached = 0.0, began
    for start, end in sorted(intervals):
        start, end = max(start, reached), min(end, ended)
        if end > start:
            covered += end - start
            reached = end
    return covered
