"""Why a ready task is not given out, in words."""

import pytest

from muster_protocol.fold import TaskState
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.breaker import Breaker
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.held import held_text
from muster_protocol.workers.role_card import RoleCard
from muster_protocol.workers.signs import Signs

NOW = 100.0
OPEN = Breaker(openings=1, opened_at=NOW - 4)
ROLES = (
    RoleCard(name="reader", tags=("read",), provider="anthropic"),
    RoleCard(name="skimmer", tags=("read",), provider="anthropic"),
    RoleCard(name="writer", tags=("write",)),
)
CARD = WorkerCard(name="w1", tags=("read", "write"), slots=2, busy=0, roles=ROLES)


def text(tag: str, *open_ones: str) -> str:
    task = TaskState(TaskSpec(id="a", description="look", tag=tag), "look", 3, 0)
    return held_text(task, dict.fromkeys(open_ones, OPEN), Signs(NOW, {"w1": CARD}), NOW)


@pytest.mark.parametrize(
    ("tag", "open_ones", "why"),
    [
        ("write", ("writer",), "role 'writer' does not answer"),
        ("read", ("provider:anthropic",), "provider 'anthropic' does not answer"),
        ("read", ("reader", "skimmer"), "role 'reader', role 'skimmer' do not answer"),
    ],
)
def test_a_task_that_nobody_is_given_says_who_does_not_answer(tag: str, open_ones: tuple[str, ...], why: str):
    assert text(tag, *open_ones) == f"held back: {why}, the next try is in 6 s"


@pytest.mark.parametrize(
    ("tag", "open_ones"), [("write", ()), ("write", ("provider:anthropic",)), ("read", ("reader",))]
)
def test_a_task_that_somebody_can_do_is_not_held(tag: str, open_ones: tuple[str, ...]):
    assert text(tag, *open_ones) == ""
