"""Which of the roles that match gets an attempt. Pure: the same attempt and measures always give the same role.

Thompson sampling: of each role a rate of success is drawn from what is known of it, so that a role of which little is
known is drawn high as often as it may be good. Roles that take longer or cost more are drawn lower. The chance is a
hash of the attempt's id. One attempt in ten goes to a role that was not drawn, so that one that recovers is noticed.
Where nothing is known the roles take turns. A role that has failed at a task comes last for it.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from muster_protocol.attempt_id import AttemptId
from muster_protocol.workers.measured import Measured

EXPLORED = 0.1  # of the attempts: with two roles the worse one gets as many
WEIGHT = 0.25  # of time, and of cost: a role that takes four times as long has to succeed 1.4 times as often
DOUBT = 3.0  # tries with the mean of all: one slow try says little


@dataclass(frozen=True, slots=True)
class Choice:
    """A role, and why it was chosen, for people."""

    role: str
    why: str


def choose(
    attempt: AttemptId,
    roles: Sequence[str],
    failed: Collection[str],
    known: Callable[[str], Measured],
    turn: int = 0,
) -> Choice:
    """The role for an attempt, of those that match; `failed` are those that have failed at the task."""
    left = [role for role in roles if role not in failed] or list(roles)
    again = f"{', '.join(dict.fromkeys(failed))} failed before" if failed and len(left) < len(roles) else ""
    if len(left) == 1:
        return Choice(left[0], again or "it is the only one that can")
    measured = {role: known(role) for role in left}
    if not any(one.tries for one in measured.values()):
        return Choice(left[turn % len(left)], _joined("its turn, nothing is known yet", again))
    first, *rest = _chances(attempt, 2 + 2 * len(left))
    scores = _scores(measured, rest[1:])
    best = max(left, key=lambda role: scores[role])
    others = [role for role in left if role != best]
    if first < EXPLORED:
        tried = others[int(rest[0] * len(others))]
        return Choice(tried, _joined(f"one try in ten goes to another than {best}; {said(measured[tried])}", again))
    return Choice(best, _joined(said(measured[best]), again))


def said(measured: Measured) -> str:
    """What is known of a role, in words."""
    if measured.success_rate is None or measured.mean_seconds is None:
        return "nothing is known of it yet"
    cost = f" and {measured.mean_usd:.4f} USD" if measured.mean_usd else ""
    return f"{measured.success_rate:.0%} of its tries succeed, in {measured.mean_seconds:.2g} s{cost}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _scores(measured: dict[str, Measured], chances: Sequence[float]) -> dict[str, float]:
    """What each role is worth, as drawn: its rate of success, less for time and cost."""
    seconds, usd = _means(measured, lambda one: one.seconds), _means(measured, lambda one: one.usd)
    pairs = zip(chances[::2], chances[1::2], strict=False)
    return {
        role: _drawn(one, *pair) * _thrift(role, seconds) * _thrift(role, usd)
        for (role, one), pair in zip(measured.items(), pairs, strict=False)
    }


def _drawn(one: Measured, first: float, second: float) -> float:
    """A rate of success, drawn from the normal distribution that is nearest to the beta of the tries."""
    mean = (one.successes + 1) / (one.tries + 2)
    deviation = math.sqrt(mean * (1 - mean) / (one.tries + 3))
    normal = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)
    return max(0.0, mean + normal * deviation)


def _means(measured: dict[str, Measured], amount: Callable[[Measured], float]) -> dict[str, float]:
    """What one try of each role takes, with some of the mean of all."""
    tries = sum(one.tries for one in measured.values())
    overall = sum(amount(one) for one in measured.values()) / tries
    return {role: (amount(one) + DOUBT * overall) / (one.tries + DOUBT) for role, one in measured.items()}


def _thrift(role: str, means: dict[str, float]) -> float:
    """1 for the role that takes least; less, the more another takes."""
    least = min(means.values())
    return (least / means[role]) ** WEIGHT if least > 0 else 1.0


def _chances(attempt: AttemptId, count: int) -> list[float]:
    """Numbers between 0 and 1, both excluded, by the attempt's id alone."""
    digest = b"".join(hashlib.sha256(f"{attempt}#{block}".encode()).digest() for block in range(count // 8 + 1))
    return [(int.from_bytes(digest[4 * n : 4 * n + 4], "big") + 0.5) / 2**32 for n in range(count)]
