"""The outcome of an attempt as a value, and its reason on a log line."""

from muster_agent.budget import Meter
from muster_protocol.messages import ResultStatus, Usage
from muster_protocol.status import MAX_REASON, failure_text
from muster_worker.outcome import Outcome, failure, failure_of, stopped, too_large


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - it is what the test asked for
        return caught


def test_the_reason_of_a_failure_names_the_error_and_the_line_that_raised_it():
    reason = failure_text(failure_of(raised(ConnectionError("no route\nto host"))))

    assert reason.startswith("ConnectionError: no route to host (test_outcome.py:")


def test_the_reason_of_a_failure_fits_on_one_log_line_and_shows_where_it_was_cut():
    assert failure_text(failure("logic", "word " * 1000)) == f"{('word ' * 1000)[: MAX_REASON - 1]}…"


def test_a_group_of_errors_is_the_failure_of_its_first():
    first = raised(ConnectionError("no route to host"))
    group = raised(ExceptionGroup("unhandled errors", [ExceptionGroup("within", [first]), ValueError("later")]))

    reason = failure_of(group)

    assert reason.error_class == "network"
    assert failure_text(reason).startswith("ConnectionError: no route to host (test_outcome.py:")


def test_an_outcome_that_is_too_large_becomes_a_final_failure_with_its_usage():
    done = Outcome(ResultStatus.DONE, "writer", "x" * 100, tool_calls=({"tool": "search"},))

    outcome = too_large(done, "larger than a message")

    assert (outcome.status, outcome.output, outcome.tool_calls) == (ResultStatus.FAILED, None, ())
    assert (outcome.role, outcome.usage) == (done.role, done.usage)
    assert outcome.error
    assert (outcome.error.message, outcome.error.is_final) == ("larger than a message", True)


def test_a_stopped_outcome_that_is_too_large_stays_stopped_with_its_usage():
    used = Usage(input_tokens=5, model_calls=1)
    meter = Meter(usage=used, tool_calls=[{"tool": "search"}])

    outcome = too_large(stopped("writer", "another goes on", meter), "larger than a message")

    assert (outcome.status, outcome.usage, outcome.tool_calls) == (ResultStatus.CANCELLED, used, ())
