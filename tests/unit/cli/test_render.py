"""Plans, progress and tasks as text on a terminal."""

import io

from rich.console import Console, RenderableType

from muster_cli.view.board import Assignment, Board
from muster_cli.view.render import MAX_ROWS, ending_of, plan_of, progress_of, remarks_on, tasks_of
from muster_client.view import RequestView
from muster_protocol.messages import Answer, AnswerStatus, ConfidenceParts
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


def test_what_the_checks_found_stands_below_an_answer_a_line_each():
    answer = Answer(
        request_id="r",
        status=AnswerStatus.PARTIAL,
        text="t",
        contradictions=("3 against 4: a says “3”,\nb says “4”",),
        unsupported=("77", "https://example.org"),
        sources=tuple(f"s{n}" for n in range(12)),
        confidence=0.25,
        confidence_parts=ConfidenceParts(done=0.5, agreeing=0.5),
    )

    assert [line.plain for line in remarks_on(answer)] == [
        "⚠ contradiction: 3 against 4: a says “3”, b says “4”",
        "⚠ in no result: 77, https://example.org",
        "sources: s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 2 more",
        "confidence 0.25: 0.5 of the tasks are done × 0.5 of the results contradict no other",
    ]


def test_the_last_line_of_an_answer_tells_the_time_saved_against_one_task_after_the_other():
    answer = Answer(request_id="r", status=AnswerStatus.DONE, text="t", seconds=2.0, sequential_seconds=6.5)

    assert ending_of(answer, None).plain == "done in 2.0 s · 6.5 s of work, 4.5 s saved"
    assert "saved" not in ending_of(answer.model_copy(update={"seconds": 7.0}), None).plain


def _lines(what: RenderableType) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=120).print(what)
    return [line.rstrip() for line in text.getvalue().splitlines()]
