"""Which step `due` returns for a failed attempt: a better description by a model, or the same once more."""

from muster_protocol.plan import Retry
from muster_supervisor.decide import Refine, TryAgain, due
from tests.unit.protocol.log_builder import START, LogBuilder, failure, plan_entry, plan_of, task

NOW = START + 10


def test_only_where_the_error_and_the_role_call_for_it_a_model_describes_a_task_better():
    tasks = [task(name) for name in ("model", "function")]
    plan = plan_of(tasks[0], tasks[1].model_copy(update={"tag": "code"}))
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan).model_copy(update={"retry": {"code": Retry(refine=False)}}))
    log.run(failure("model"), failure("function"))

    steps = due(log.state, NOW)

    assert [step.attempt_id.task_id for step in steps if isinstance(step, Refine)] == ["model"]
    assert [step.attempt_id.task_id for step in steps if isinstance(step, TryAgain)] == ["function"]
