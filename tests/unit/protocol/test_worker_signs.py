"""What the registry says about the worker of a task: well, silent, gone, and when the task is tried again."""

from dataclasses import replace

import pytest

from muster_protocol.status import Seen, explain, explain_task
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.signs import Signs
from tests.guards import guards
from tests.unit.cli.logs import Log, task

AT = 1000.0


def signs(renewed_at: float = AT - 2, *, tags: tuple[str, ...] = ("research",), busy: int = 1) -> Signs:
    card = WorkerCard(name="w1", tags=tags, slots=2, busy=busy, renewed_at=renewed_at)
    return Signs(AT, {"w1": card}, ack_wait_seconds=30.0)


def said(found: Signs, *, is_started: bool = True) -> tuple[str, str, bool]:
    state = Log().taken().planned(task("t1")).reserved("t1").state()
    started = {state.attempt_id("t1", 1): "w1"} if is_started else {}
    seen = Seen(20.0, started, {"research"}, found)
    standing = explain(state, seen)
    return standing.reason, explain_task(state, state.tasks["t1"], seen).reason, standing.is_stalled


def test_a_worker_that_renews_its_card_is_well():
    assert said(signs()) == ("0 of 1 task done, t1 running", "a worker has started it", False)


@guards("libs/protocol/muster_protocol/workers/signs.py", "if card is None:", rule="I4", replace="if False:")
@pytest.mark.parametrize(
    ("left", "again"),
    [
        ({"w1": AT - 4}, "tried again in 26 s"),
        ({"w1": AT - 40}, "tried again as soon as a worker takes it"),
        ({}, "tried again in 20 s"),  # its card was dropped: ten seconds ago it was dead at the latest
    ],
)
def test_a_worker_without_a_card_is_gone_and_its_task_is_tried_again(left: dict[str, float], again: str):
    request, of_task, is_stalled = said(Signs(AT, {}, left, ack_wait_seconds=30.0))

    assert of_task == f"its worker is gone (worker-w1); {again}"
    assert (request, is_stalled) == (f"t1: {of_task}", True)


def test_a_task_that_nobody_else_could_take_says_so():
    state = Log().taken().planned(task("t1")).reserved("t1").state()
    seen = Seen(20.0, {state.attempt_id("t1", 1): "w1"}, set(), Signs(AT, ack_wait_seconds=30.0))

    assert explain(state, seen).reason.endswith("20 s; no live worker serves the tag 'research'")


def test_whoever_looked_before_knows_when_a_worker_was_last_alive():
    before = signs(AT - 7)

    assert Signs(AT, {}, ack_wait_seconds=30.0).after(before).trouble("w1") == (
        "its worker is gone (worker-w1); tried again in 28 s"
    )
    assert replace(before, at=AT + 1).after(before).left == {}


@guards("libs/protocol/muster_protocol/workers/signs.py", "if not self.is_silent(card):", rule="I4", replace="if True:")
def test_a_worker_that_is_silent_is_named_with_its_silence():
    assert said(signs(AT - 9))[1] == (
        "worker-w1 has given no sign for 9 s: what it runs blocks it, or it is dead or cut off"
    )


def test_a_task_that_was_not_announced_may_be_what_silences_its_worker():
    silent = signs(AT - 9)
    full = WorkerCard(name="w2", tags=("research",), slots=1, busy=1, renewed_at=AT)

    assert "w1 has given no sign" in said(silent, is_started=False)[1]
    assert said(replace(silent, cards={**silent.cards, "w2": full}), is_started=False)[2] is False
    assert said(signs(AT - 9, tags=("other",)), is_started=False)[2] is False


def test_without_knowing_the_lease_of_a_task_nobody_says_when_it_is_tried_again():
    assert Signs(AT).trouble("w1") == "its worker is gone (worker-w1); tried again when its lease has run out"
