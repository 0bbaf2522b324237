"""Plans, progress and tasks as text on a terminal."""

import io

from rich.console import Console, RenderableType

from muster_cli.view.board import Assignment, Board
from muster_cli.view.render import MAX_ROWS, plan_of, progress_of, tasks_of
from muster_client.view import RequestView
from muster_protocol.messages import AnswerStatus
from muster_protocol.status import Seen
from tests.unit.cli.logs import Log, task


def test_a_plan_shows_which_task_waits_for_which():
    log = Log().taken().planned(task("find"), task("write", "writing", after=("find",)))

    assert _lines(plan_of(log.state())) == ["  find     research  at once", "  └ write  writing   after find"]


def test_a_large_plan_is_cut_to_a_screen():
    log = Log().taken().planned(*(task(f"t{n}") for n in range(1000)))

    lines = _lines(plan_of(log.state()))

    assert len(lines) == MAX_ROWS + 1
    assert lines[-1] == f"  … and {1000 - MAX_ROWS} more"


def test_progress_shows_the_worker_of_each_task():
    log = Log().taken().planned(task("find"), task("write", "writing", after=("find",))).reserved("find")
    board = Board(log.state(), {"find": Assignment("1", 1, since=10.0, progress="3 of 9 pages")})

    assert _lines(progress_of(board, 11.5)) == [
        "  ◐ find     research   1.5 s  worker-1  · 3 of 9 pages",
        "  └ ○ write  writing   waiting                           after find",
        "  0 of 2 tasks done",
    ]


def test_a_task_that_was_not_done_when_the_request_ended_is_shown_as_cancelled():
    log = Log().taken().planned(task("find")).reserved("find").answered(AnswerStatus.FAILED)

    assert "■ cancelled" in _lines(tasks_of(RequestView(log.state(), Seen(20.0))))[1]


def test_a_failed_task_shows_its_reason_and_the_line_of_code():
    stack = '  File "/team/roles.py", line 12, in search\n'
    log = Log().taken().planned(task("find", max_attempts=1)).reserved("find").failed("find", "no route", stack=stack)

    assert _lines(tasks_of(RequestView(log.state(), Seen(20.0))))[1].endswith("no route (roles.py:12)")


def _lines(what: RenderableType) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=120).print(what)
    return [line.rstrip() for line in text.getvalue().splitlines()]
