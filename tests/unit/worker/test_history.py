"""Which tasks a worker looks up before it works on them."""

from typing import Any

import pytest

from muster_worker.history import FRESH_SECONDS, is_suspect
from tests.flow.in_process import task_of

TASK = task_of("t").model_copy(update={"reserved_at": 100.0})
FIRST: dict[str, Any] = {"delivery": 1, "now": 100.5, "connected_at": 90.0, "ack_wait": 30.0}


def test_a_first_delivery_soon_after_its_reservation_is_worked_on_without_a_look():
    assert not is_suspect(TASK, **FIRST)


@pytest.mark.parametrize(
    "why",
    [
        pytest.param({"delivery": 2}, id="it came before"),
        pytest.param({"connected_at": 100.1}, id="the broker was away since"),
        pytest.param({"now": 100.1 + FRESH_SECONDS}, id="it lay somewhere for long"),
        pytest.param({"now": 101.1, "ack_wait": 1.0}, id="it lay somewhere for longer than a peer waits"),
    ],
)
def test_a_task_that_may_be_a_second_copy_is_looked_up(why: dict[str, Any]):
    assert is_suspect(TASK, **{**FIRST, **why})
