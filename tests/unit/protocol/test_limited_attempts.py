"""An attempt for which a provider's limits left no time: nobody failed, so it is no strike and tells against nobody."""

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.fold import TaskPhase
from muster_protocol.messages import Failure, Progress, Result, ResultStatus
from muster_protocol.plan import Retry
from muster_protocol.retry import is_refined, is_resumed, is_retried
from muster_protocol.status import Seen, explain_task
from muster_protocol.workers.breaker import event_of
from muster_protocol.workers.held import waits_text
from muster_protocol.workers.measured import is_measured
from muster_supervisor.decide import TryAgain, due
from tests.guards import guards
from tests.unit.cli.logs import Log
from tests.unit.cli.logs import task as a_task
from tests.unit.protocol.log_builder import REQUEST, START, planned, revision, task

UNTIL = START + 900
WAITS = Failure(error_class="resource", message="the next call would have to wait", limited_until=UNTIL)


def limited(attempt: int) -> Result:
    return Result(
        request_id=REQUEST,
        task_id="a",
        attempt=attempt,
        status=ResultStatus.FAILED,
        error=WAITS,
        worker="w1",
        role="work",
    )


@guards("libs/protocol/muster_protocol/fold/results.py", "task.max_attempts += 1", rule="I4", replace="pass")
@given(st.integers(1, 8), st.integers(1, 3))
def test_it_costs_no_attempt_and_is_tried_when_its_turn_comes(waits: int, most: int) -> None:
    log = planned(task("a", max_attempts=most))
    for attempt in range(1, waits + 1):
        log.run(limited(attempt))
        state = log.state
        assert state.tasks["a"].max_attempts == most + attempt
        assert state.tasks["a"].phase is TaskPhase.AWAITING_RETRY
        (step,) = [step for step in due(state, START + 500) if isinstance(step, TryAgain)]
        assert step.not_before >= UNTIL
        log.own(revision("a", attempt + 1))


def test_it_says_nothing_about_its_role() -> None:
    assert is_retried(limited(10), 1)
    assert event_of(limited(1), START, by_owner=False) is None
    assert not is_measured(limited(1))


def test_no_model_is_asked_for_better_words_and_its_turns_are_gone_on_with() -> None:
    assert is_refined(Failure(error_class="resource", message="out of memory"), Retry(refine=True))
    assert not is_refined(WAITS, Retry(refine=True))
    assert is_resumed(WAITS)


def test_a_task_that_waits_says_for_what_and_how_long() -> None:
    state = Log().taken().planned(a_task("t1")).reserved("t1").state()
    attempt = state.attempt_id("t1", 1)
    said = Progress(
        **attempt._asdict(), text="waits", waits_for="anthropic's limit of 60 requests a minute", waits_until=32.0
    )
    standing = explain_task(state, state.tasks["t1"], Seen(20.0, {attempt: "w1"}, waits={attempt: said}))

    assert (standing.status, standing.reason) == (
        "running",
        "waits for anthropic's limit of 60 requests a minute, about 12 s",
    )
    assert waits_text(said.model_copy(update={"waits_until": 0.0}), 20.0).endswith("requests a minute")
    assert waits_text(None, 20.0) == waits_text(Progress(**attempt._asdict(), text="x"), 20.0) == ""
