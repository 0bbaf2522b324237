"""What a request has asked people, and for how long its clock stood still for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from muster_protocol.messages import Decision, Question


@dataclass(slots=True)
class Asked:
    """One question, and the decision that counts once there is one."""

    question: Question
    asked_at: float
    decision: Decision | None = None
    ended_at: float | None = None  # never after its limit

    @property
    def end(self) -> float:
        """When it ended, or will end at the latest."""
        return self.question.until if self.ended_at is None else self.ended_at

    def is_settled_by(self, decision: Decision) -> bool:
        """Whether a decision is a reply to it: in time, one of its choices, or the one that counts without a reply."""
        if decision.decision == "default":
            return decision.choice == self.question.otherwise
        is_choice = decision.choice in self.question.choices if self.question.choices else not decision.choice
        return decision.said_at <= self.question.until and is_choice


def paused_seconds(questions: Iterable[Asked], most: float) -> float:
    """The union of the intervals in which a question was open; of one that is open now, up to its limit."""
    total, covered_until = 0.0, -inf
    for begin, end in sorted((asked.asked_at, asked.end) for asked in questions):
        total += max(0.0, end - max(begin, covered_until))
        covered_until = max(covered_until, end)
    return min(total, most)
