"""Ready tasks that nobody may be given now: they wait, and hold up nothing else."""

from muster_supervisor.decide import DispatchTasks, due
from tests.unit.protocol.log_builder import START, planned, task

NOW = START + 10


def test_what_nobody_may_be_given_now_waits_and_does_not_stop_what_somebody_may():
    log = planned(task("a"), task("b"), task("c"))

    (step,) = due(log.state, NOW, is_held=lambda task: task.spec.id != "b")

    assert isinstance(step, DispatchTasks)
    assert [reservation.task_id for reservation in step.attempts] == ["b"]


def test_a_request_whose_tasks_all_wait_is_not_answered_as_if_its_budget_were_used_up():
    log = planned(task("a"))

    assert due(log.state, NOW, is_held=lambda _: True) == []
