"""What people see, as text."""

import io

from rich.console import Console, RenderableType

from muster_cli.view.board import Assignment, Board
from muster_cli.view.render import MAX_ROWS, plan_of, progress_of, tasks_of
from muster_protocol.messages import AnswerStatus
from tests.unit.cli.logs import Log, task


def test_a_plan_shows_who_waits_for_whom():
    log = Log().taken().planned(task("find"), task("write", "writing", after=("find",)))

    assert _lines(plan_of(log.state())) == ["  find     research  at once", "  └ write  writing   after find"]


def test_a_large_plan_is_cut_to_a_screen():
    log = Log().taken().planned(*(task(f"t{n}") for n in range(1000)))

    lines = _lines(plan_of(log.state()))

    assert len(lines) == MAX_ROWS + 1
    assert lines[-1] == f"  … and {1000 - MAX_ROWS} more"


def test_progress_shows_who_does_what():
    log = Log().taken().planned(task("find"), task("write", "writing", after=("find",))).reserved("find")
    board = Board(log.state(), {"find": Assignment("1", 1, since=10.0, said="3 of 9 pages")})

    assert _lines(progress_of(board, 11.5)) == [
        "  ◐ find     research   1.5 s  worker-1  · 3 of 9 pages",
        "  └ ○ write  writing   waiting                           after find",
        "  0 of 2 tasks done",
    ]


def test_what_was_left_when_a_request_ended_is_not_shown_as_running():
    log = Log().taken().planned(task("find")).reserved("find").answered(AnswerStatus.FAILED)

    assert "– not done" in _lines(tasks_of(log.state()))[1]


def _lines(what: RenderableType) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=120).print(what)
    return [line.rstrip() for line in text.getvalue().splitlines()]
