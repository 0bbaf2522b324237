"""What the command line prints while a request runs."""

import pytest

from muster_cli.view.board import Board, in_order
from muster_protocol.fold import RequestState
from muster_protocol.messages import AnswerStatus, ConflictFound, Progress, Started, ToolUsed
from tests.unit.cli.logs import Log, task


def test_each_entry_gives_one_line_in_order():
    log = Log().taken().planned(task("t1"), task("t2", after=("t1",))).reserved("t1").done("t1")
    log.answered(AnswerStatus.PARTIAL)
    board = Board(RequestState("r"))

    shown = [str(news) for entry in [*log.entries, *log.entries] if (news := board.apply_entry(entry))]

    assert shown == ["taken   by supervisor-1", "plan    2 tasks", "✓ t1  0.5 s by worker-1", "answer  partial"]


def test_a_takeover_and_a_second_result_are_news():
    log = Log().taken().planned(task("t1")).reserved("t1").taken(instance="2").done("t1").done("t1")
    board = Board(RequestState("r"))

    shown = [str(news) for entry in log.entries if (news := board.apply_entry(entry))]

    assert "⇄ taken over by supervisor-2" in shown
    assert shown[-1] == "≈ t1  a second result of attempt 1, not counted"


def test_the_worker_of_a_task_is_known_until_its_result():
    log = Log().taken().planned(task("t1")).reserved("t1")
    board = Board(RequestState("r"))
    for entry in log.entries:
        board.apply_entry(entry)

    assert str(board.apply_event(_started("1"), 1.0)) == "→ t1  worker-1 as researcher"
    assert str(board.apply_event(_started("2"), 2.0)) == "→ t1  worker-2 as researcher, after worker-1"
    assert board.assignments["t1"].worker == "2"
    board.apply_entry(log.done("t1").entries[-1])

    assert board.assignments == {}
    assert board.apply_event(_started("3"), 3.0) is None


def test_an_item_of_a_map_is_called_by_what_it_is():
    spec = task("item-1").model_copy(update={"label": "Rome\x1b[2J"})
    log = Log().taken().planned(spec).reserved("item-1").done("item-1")
    board = Board(RequestState("r"))

    shown = [str(news) for entry in log.entries if (news := board.apply_entry(entry))]

    assert shown[-1] == "✓ Rome\N{REPLACEMENT CHARACTER}[2J  0.5 s by worker-1"


def test_a_start_that_is_heard_of_after_the_result_of_its_attempt_is_no_news():
    log = Log().taken().planned(task("t1")).reserved("t1").failed("t1", "no route")
    board = Board(log.state())

    assert board.apply_event(_started("1"), 1.0) is None
    assert board.assignments == {}


def test_a_worker_that_has_a_task_again_is_not_said_to_come_after_itself():
    board = Board(Log().taken().planned(task("t1")).reserved("t1").state())
    board.apply_event(_started("1"), 1.0)

    again = board.apply_event(_started("1").model_copy(update={"attempt": 2}), 2.0)

    assert str(again) == "→ t1  worker-1 as researcher"


@pytest.mark.parametrize(
    ("stack", "where"),
    [
        (None, ""),
        ('  File "/team/roles.py", line 12, in search\n    fetch()\n', " (roles.py:12)"),
        (
            '  File "/team/roles.py", line 12, in search\n'
            '  File "/venv/lib/python3.11/site-packages/httpx/_client.py", line 9, in send\n',
            " (roles.py:12)",
        ),
        ('  File "/usr/lib/python3.11/socket.py", line 8, in connect\n', " (socket.py:8)"),
    ],
)
def test_a_failed_attempt_shows_its_reason_and_the_line_of_code(stack: str | None, where: str):
    log = Log().taken().planned(task("t1")).reserved("t1").failed("t1", "ConnectionError: no\n route", stack=stack)
    board = Board(RequestState("r"))

    shown = [str(news) for entry in log.entries if (news := board.apply_entry(entry))]

    assert shown[-1] == f"✗ t1  attempt 1 failed: ConnectionError: no route{where}"


def test_a_conflict_names_both_workers():
    same = {"request_id": "r", "task_id": "t1", "attempt": 1, "what": "finished twice", "at": 1.0}

    news = Board(RequestState("r")).apply_event(ConflictFound.of({**same, "first": "w-1", "second": "w-2"}), 1.0)

    assert str(news) == "⚠ t1  finished twice: w-1 and w-2"


def test_progress_and_tools_are_shown_at_most_once_a_second():
    log = Log().taken().planned(task("t1")).reserved("t1")
    board = Board(log.state())
    board.apply_event(_started("1"), 1.0)

    assert str(board.apply_event(_progress("3 of\n 9 pages"), 1.1)) == "· t1  3 of 9 pages"
    assert board.apply_event(_progress("4 of 9 pages"), 1.2) is None
    assert board.assignments["t1"].progress == "4 of 9 pages"
    assert str(board.apply_event(_used("search", None), 2.2)) == "· t1  used search"
    assert str(board.apply_event(_used("calculate", "no such unit"), 3.3)) == "· t1  calculate failed: no such unit"
    board.apply_entry(log.done("t1").entries[-1])

    assert board.apply_event(_progress("late"), 9.0) is None


def test_tasks_are_listed_after_their_dependencies():
    log = Log().taken().planned(task("c", after=("a", "b")), task("b", after=("a",)), task("a"))

    assert in_order(log.state()) == [("a", 0), ("b", 1), ("c", 2)]


def _started(worker: str) -> Started:
    return Started(
        request_id="r", task_id="t1", attempt=1, worker=worker, role="researcher", delivery=1, task_sequence=1
    )


def _progress(text: str) -> Progress:
    return Progress(request_id="r", task_id="t1", attempt=1, text=text)


def _used(tool: str, error: str | None) -> ToolUsed:
    return ToolUsed(request_id="r", task_id="t1", attempt=1, tool=tool, seconds=0.1, error=error)
