"""What a process has learnt about its calls and not written yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster_protocol.workers.rate_limits import Change, Limits, RateRecord, changed, corrected, refused


class Refusal(NamedTuple):
    """The provider refused a call."""

    at: float
    seconds: float | None


@dataclass(slots=True)
class News:
    """What is to be added to the record with the next write."""

    changes: list[Change] = field(default_factory=list[Change])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    is_running_new: bool = False

    def __bool__(self) -> bool:
        return bool(self.changes or self.refusals or self.is_running_new)

    def refused(self, record: RateRecord, now: float, seconds: float | None) -> RateRecord:
        self.refusals.append(Refusal(now, seconds))
        return refused(record, now, seconds)

    def learn(
        self, record: RateRecord, limits: Limits, changes: list[Change], left: Mapping[str, int], now: float
    ) -> RateRecord:
        """Take what a call came to. What others have started with the same key is counted once."""
        self.changes += changes
        record = changed(record, changes)
        others = corrected(record, limits, left, now) if left else []
        self.changes += others
        return changed(record, others)

    def over(self, record: RateRecord) -> RateRecord:
        """A record that somebody wrote, with what is not written yet."""
        if self.changes:
            record = changed(record, self.changes)
        for refusal in self.refusals:
            record = refused(record, refusal.at, refusal.seconds)
        return record

    def sent(self) -> "News":
        """What is about to be written."""
        sent = News(list(self.changes), list(self.refusals), self.is_running_new)
        self.is_running_new = False
        return sent

    def written(self, sent: "News") -> None:
        """What was sent is in the record; what has come since is not."""
        del self.changes[: len(sent.changes)], self.refusals[: len(sent.refusals)]

    def not_written(self, sent: "News") -> None:
        """Others wrote first."""
        self.is_running_new |= sent.is_running_new

    def in_doubt(self, sent: "News") -> None:
        """Nobody knows whether it was written. Given back twice, it would let more start than may."""
        self.changes[: len(sent.changes)] = [one for one in sent.changes if one.starts >= 0 and one.tokens >= 0]
        self.not_written(sent)
