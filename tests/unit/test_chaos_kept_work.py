"""The chaos checker's view of I4: a success that is stored before the answer is done in it, and in its output."""

from muster_protocol.messages import Answer, AnswerStatus, Output, TaskOutcome
from muster_protocol.status_words import TaskStatus
from tests.chaos.checker import Checker
from tests.chaos.evidence import Evidence, judged
from tests.chaos.ledger import Ledger, Sent
from tests.unit.protocol.log_builder import REQUEST, LogBuilder, failure, planned, reserved, result, task


def broken_rules(log: LogBuilder, rows: dict[str, TaskStatus], output: Output) -> list[str]:
    table = tuple(TaskOutcome(id=name, role="", status=status, seconds=1, attempts=1) for name, status in rows.items())
    log.own(Answer(request_id=REQUEST, status=AnswerStatus.PARTIAL, text="", output=output, tasks=table))
    evidence = Evidence({REQUEST: judged(REQUEST, log.entries)}, [], [], {}, {})
    ledger = Ledger(sent={REQUEST: Sent(REQUEST, 60.0, 0.0)})
    return [violation.text for violation in Checker(ledger, evidence, 1.0).violations()]


def given_up() -> LogBuilder:
    log = planned(task("a", max_attempts=1), task("b"))
    log.run(result("b"))
    log.own(reserved(("a", 1)))
    log.own(failure("a").model_copy(update={"worker": ""}))
    return log


def test_a_success_that_was_stored_after_its_task_was_given_up_must_be_done_in_the_answer():
    log = given_up()
    log.work(result("a"))

    (text,) = broken_rules(log, {"a": TaskStatus.FAILED, "b": TaskStatus.DONE}, {"b": "found"})

    assert text.startswith("a is stored as done")


def test_without_a_success_the_task_may_have_failed():
    assert broken_rules(given_up(), {"a": TaskStatus.FAILED, "b": TaskStatus.DONE}, {"b": "found"}) == []


def test_what_is_done_must_be_in_the_output_under_its_id():
    texts = broken_rules(given_up(), {"a": TaskStatus.FAILED, "b": TaskStatus.DONE}, "found")

    assert texts == ["b is done, and the answer has no output of it"]
