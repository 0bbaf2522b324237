"""`due`: one example of each rule."""

import time

import pytest

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import RequestState, last_moment
from muster_protocol.messages import AnswerStatus, Budget, Decision, Reservation, Reserved
from muster_protocol.retry import retry_delay
from muster_supervisor.decide import (
    Allowance,
    DispatchTasks,
    Expire,
    GiveAnswer,
    MakePlan,
    Refine,
    due,
    next_time,
)
from tests.guards import guards
from tests.unit.protocol.log_builder import (
    START,
    LogBuilder,
    answer,
    failure,
    plan_entry,
    plan_of,
    planned,
    reserved,
    result,
    revision,
    taken,
    task,
)

NOW = START + 10
ALLOWANCE = Allowance(tokens=100, usd=1.0)


def dispatched_now(state: RequestState, now: float = NOW) -> list[str]:
    steps = [step for step in due(state, now) if isinstance(step, DispatchTasks)]
    return [reservation.task_id for step in steps for reservation in step.attempts]


def with_budget(budget: Budget, *names: str) -> LogBuilder:
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(*map(task, names)), budget=budget))
    return log


def test_a_request_without_a_plan_is_planned():
    log = LogBuilder()
    log.take()

    assert due(log.state, NOW) == [MakePlan()]


def test_nothing_is_due_for_an_answered_request():
    log = planned(task("t"))
    log.own(answer())

    assert due(log.state, NOW) == []


@guards(
    "services/supervisor/muster_supervisor/decide.py",
    "attempts = tuple(_dispatchable(state, now, allowance, is_held))",
    rule="I5",
    replace="attempts = () if state.in_flight else tuple(_dispatchable(state, now, allowance, is_held))",
)
def test_i5_a_chain_beside_a_slow_task_does_not_wait_for_it():
    log = planned(task("slow"), task("one"), task("two", "one"), task("three", "two"), task("all", "slow", "three"))
    log.own(reserved(("slow", 1)))

    for name in ("one", "two", "three"):
        assert dispatched_now(log.state) == [name]
        log.run(result(name))

    assert dispatched_now(log.state) == []
    log.work(result("slow"))
    assert dispatched_now(log.state) == ["all"]


def test_when_every_task_is_done_the_answer_is_due():
    log = planned(task("t"))
    log.run(result("t"))

    assert due(log.state, NOW) == [GiveAnswer(AnswerStatus.DONE, "")]


def test_tasks_that_do_not_depend_on_a_failed_one_are_done_and_the_answer_is_partial():
    log = planned(task("t1", max_attempts=1), task("t2", "t1"), task("t3", "t2"), task("t4"), task("t5", "t4"))
    log.run(failure("t1"))

    assert dispatched_now(log.state) == ["t4"]
    log.run(result("t4"))
    assert dispatched_now(log.state) == ["t5"]
    log.run(result("t5"))

    assert due(log.state, NOW) == [GiveAnswer(AnswerStatus.PARTIAL, "")]


def test_a_request_whose_task_failed_three_times_has_failed():
    log = planned(task("t"))
    for attempt in (1, 2):
        log.run(failure("t", attempt))
        delay = retry_delay(AttemptId("r1", "t", attempt + 1))
        assert due(log.state, NOW) == [Refine(log.state.attempt_id("t", attempt + 1), NOW + delay)]
        log.own(revision("t", attempt + 1))
    log.run(failure("t", 3))

    assert due(log.state, NOW) == [GiveAnswer(AnswerStatus.FAILED, "")]


def test_a_retry_waits_until_its_delay_is_over():
    log = planned(task("t"))
    log.run(failure("t"))
    log.own(revision("t", 2, not_before=NOW + 5))
    state = log.state

    assert due(state, NOW) == []
    assert next_time(state) == NOW + 5
    assert dispatched_now(state, NOW + 5) == ["t"]


def test_ready_tasks_are_dispatched_before_failed_ones_are_refined():
    log = planned(task("bad"), task("good"))
    log.run(failure("bad"))

    assert [type(step) for step in due(log.state, NOW)] == [DispatchTasks, Refine]


@guards(
    "services/supervisor/muster_supervisor/decide.py",
    "for task_id in state.expired]",
    rule="I4",
    replace="for task_id in ()]",
)
def test_an_attempt_without_a_result_expires_a_moment_after_its_timeout():
    log = planned(task("t"))
    log.own(reserved(("t", 1), timeout_seconds=60))
    reserved_at = log.time

    assert due(log.state, reserved_at + 60.9) == []
    assert due(log.state, reserved_at + 61.1) == [Expire(log.state.attempt_id("t", 1))]


def test_a_cancelled_request_is_answered_at_once():
    log = planned(task("t"), task("u"))
    log.run(result("t"))
    log.own(Decision(decision="cancel", control_sequence=1, by="client/c1", reason="enough"))

    assert due(log.state, NOW) == [GiveAnswer(AnswerStatus.CANCELLED, "enough", is_plain=True, cause="cancelled")]


@guards("services/supervisor/muster_supervisor/decide.py", "if moment is not None and now >= moment:", rule="I4")
def test_i4_at_the_last_moment_the_answer_is_partial():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("t"), task("u")), deadline=log.time + 100))
    log.run(result("t"))
    state = log.state
    last_moment = next_time(state)
    assert last_moment is not None

    assert dispatched_now(state, last_moment - 1) == ["u"]
    assert due(state, last_moment) == [GiveAnswer(AnswerStatus.PARTIAL, "the deadline was reached", cause="deadline")]


def test_a_request_whose_tasks_are_all_done_is_done_also_after_its_deadline():
    log = planned(task("t"))
    log.run(result("t"))

    assert due(log.state, START + 1_000_000) == [GiveAnswer(AnswerStatus.DONE, "")]


def test_i4_a_request_that_was_never_planned_is_answered_at_its_deadline():
    log = LogBuilder()
    log.take()

    assert due(log.state, START + 1_000_000) == [
        GiveAnswer(AnswerStatus.FAILED, "the deadline was reached", cause="deadline")
    ]


@guards(
    "services/supervisor/muster_supervisor/decide.py",
    "if moment is None or seconds <= moment - now:",
    rule="I4",
    replace="if True:",
)
def test_no_attempt_is_given_longer_than_the_request_has():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("t")), deadline=log.time + 20))

    (step,) = due(log.state, START + 10)

    assert isinstance(step, DispatchTasks)
    assert 5 < step.attempts[0].timeout_seconds < 10


def test_no_more_tasks_are_in_flight_than_the_cap():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(*(task(name) for name in "abcd")), in_flight=2))
    assert dispatched_now(log.state) == ["a", "b"]

    log.own(reserved(("a", 1)))

    assert dispatched_now(log.state) == ["b"]


def test_each_attempt_gets_its_allowance_and_the_last_what_is_left():
    log = with_budget(Budget(tokens=250, usd=5), "a", "b", "c", "d")

    (step,) = due(log.state, NOW, ALLOWANCE)

    assert isinstance(step, DispatchTasks)
    assert [(r.task_id, r.tokens, r.usd) for r in step.attempts] == [("a", 100, 1), ("b", 100, 1), ("c", 50, 1)]


def test_tokens_that_an_attempt_did_not_use_go_to_the_next():
    log = with_budget(Budget(tokens=100), "a", "b")
    log.own(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60, tokens=100),)))
    assert due(log.state, NOW, ALLOWANCE) == []

    log.work(result("a", tokens=30))

    (step,) = due(log.state, NOW, ALLOWANCE)
    assert isinstance(step, DispatchTasks)
    assert step.attempts[0].tokens == 70


def test_money_that_is_reserved_is_not_given_twice():
    log = with_budget(Budget(usd=1.5), "a", "b")
    log.own(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60, usd=1.0),)))

    (step,) = due(log.state, NOW, ALLOWANCE)

    assert isinstance(step, DispatchTasks)
    assert step.attempts[0].usd == 0.5


def test_a_request_whose_budget_is_used_up_is_answered_with_what_there_is():
    log = with_budget(Budget(tokens=100), "a", "b")
    log.run(result("a", tokens=100))

    assert due(log.state, NOW) == [GiveAnswer(AnswerStatus.PARTIAL, "the budget is used up", cause="budget")]


def test_an_amount_that_is_only_a_rounding_error_pays_for_no_attempt():
    log = with_budget(Budget(usd=0.3), "a", "b", "c", "d")

    (step,) = due(log.state, NOW, Allowance(usd=0.1))

    assert isinstance(step, DispatchTasks)
    assert [reservation.task_id for reservation in step.attempts] == ["a", "b", "c"]


@pytest.mark.parametrize(("whole", "kept"), [(0, 0), (-5, 0), (10, 1), (50, 5), (3_600, 5)])
def test_a_tenth_of_the_time_but_no_more_than_five_seconds_is_kept_for_the_answer(whole: float, kept: float):
    log = LogBuilder()
    log.own(taken("s1", deadline=START + whole))

    moment = last_moment(log.state)

    assert moment is not None
    assert START + whole - moment == pytest.approx(kept, abs=0.2)  # the log begins a moment after START


def test_due_does_not_take_longer_for_a_large_plan():
    costs: list[float] = []
    for count in (99, 9_999):
        log = planned(task("first"), *(task(f"t{n}", "first") for n in range(count)))
        log.own(reserved(("first", 1)))
        state = log.state
        rounds: list[float] = []
        for _ in range(20):
            start = time.thread_time()
            assert due(state, NOW) == []
            rounds.append(time.thread_time() - start)
        costs.append(min(rounds))

    assert costs[1] <= 5 * costs[0]  # a look at every task would make it hundreds
