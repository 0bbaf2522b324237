"""The lines of `muster logs`."""

from muster_client.log_lines import LogLine, in_order, line_of
from muster_protocol.messages import Reservation, Reserved


def _line(time: float, kind: str, task: str = "t", attempt: int = 1, worker: str = "w1") -> LogLine:
    return LogLine(time, "worker/w1", kind, kind, task, attempt, worker)


def test_a_start_stands_before_all_that_its_worker_said_of_the_attempt():
    first, again = _line(5.0, "started"), _line(6.0, "started")
    lines = [_line(3.0, "tool"), _line(4.0, "result"), first, again, _line(2.0, "started", worker="w2")]
    lines += [_line(1.0, "taken", task="", attempt=0, worker=""), _line(4.5, "tool", attempt=2)]

    shown = [(line.kind, line.worker, line.attempt) for line in in_order(lines)]

    assert shown == [
        ("taken", "", 0),
        ("started", "w2", 1),
        ("started", "w1", 1),
        ("tool", "w1", 1),
        ("result", "w1", 1),
        ("tool", "w1", 2),
        ("started", "w1", 1),
    ]


def test_what_a_tool_did_stands_before_the_result_of_its_attempt():
    lines = [_line(1.0, "started"), _line(2.0, "result"), _line(2.1, "tool"), _line(2.2, "revision", worker="")]
    lines += [_line(2.3, "tool", worker="w2"), _line(3.0, "tool", attempt=2)]

    shown = [(line.kind, line.worker, line.attempt) for line in in_order(lines)]

    assert shown == [
        ("started", "w1", 1),
        ("tool", "w1", 1),
        ("result", "w1", 1),
        ("revision", "", 1),
        ("tool", "w2", 1),
        ("tool", "w1", 2),
    ]


def test_a_reservation_says_for_which_attempts_or_for_which_call_it_is():
    attempts = Reserved(attempts=(Reservation(task_id="find", attempt=1, timeout_seconds=60),))
    call = Reserved(attempts=(), purpose="plan", tokens=9000, usd=0.5)

    said = [line_of(1.0, "supervisor/s1", body).message for body in (attempts, call)]

    assert said == ["… reserve find attempt 1", "… reserve plan: at most 9,000 tokens and 0.5000 USD"]
