"""The lines of `muster logs`."""

from muster_client.log_lines import LogLine, in_order


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
