"""A request as a waterfall on terminals of several widths."""

import io
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from muster_cli.view.bars import Ink, Part, Scale
from muster_cli.view.plain import ago, duration, plain
from muster_cli.view.waterfall import MAX_LINES, fit, show_waterfall
from muster_client.timeline import StoredEvent, timeline
from muster_protocol.fold import Entry
from muster_protocol.messages import AnswerStatus, Started
from tests.unit.client.test_timeline_properties import events
from tests.unit.protocol.arbitrary import logs
from tests.unit.protocol.log_builder import (
    REQUEST,
    START,
    LogBuilder,
    answer,
    approval,
    decision,
    failure,
    order,
    plan_entry,
    plan_of,
    planned,
    reserved,
    result,
    revision,
    task,
)

NOW = START + 20
WIDTHS = [80, 120, 200]
EVIL = "no \x1b[31mroute\x1b[0m [bold]at all[/bold]\u202e\r\nsecond line"


def drawn(log: LogBuilder, width: int = 120, *said: StoredEvent, is_whole: bool = False) -> list[str]:
    return drawn_of(log.entries, list(said), width, is_whole=is_whole)


def drawn_of(entries: list[Entry], said: list[StoredEvent], width: int, *, is_whole: bool = False) -> list[str]:
    text = io.StringIO()
    found = timeline(REQUEST, entries, said, now=NOW)
    show_waterfall(Console(file=text, width=width), found, is_whole=is_whole)
    return text.getvalue().splitlines()


def line_of(lines: list[str], words: str) -> str:
    (found,) = [line for line in lines if line.startswith(words)]
    return found


def story() -> LogBuilder:
    """Load fails once, sum waits for it, aside does not matter."""
    log = planned(task("load"), task("aside"), task("sum", "load"))
    log.own(reserved(("load", 1), ("aside", 1)))
    log.time = START + 2
    log.work(failure("load", message=EVIL))
    calls = [
        {"tool": "search", "at": 0.1 * n, "seconds": 0.1, "error": None, "arguments": '{"q": 1}'} for n in range(3)
    ]
    calls.append({"tool": "search", "at": 0.5, "seconds": 0.1, "error": "no page"})
    log.work(result("aside").model_copy(update={"tool_calls": tuple(calls)}))
    log.own(revision("load", 2))
    log.time = START + 6
    log.run(result("load", 2))
    log.time = START + 10
    log.run(result("sum"))
    log.own(answer())
    return log


@pytest.mark.parametrize("width", WIDTHS)
def test_every_task_has_a_line_with_its_bar_and_no_line_is_too_wide(width: int):
    lines = drawn(story(), width)

    assert all(cell_len(line) <= width for line in lines)
    for words in ("✓ queued", "✓ plan: 3 tasks", "✗ load ", "✓ load #2", "✓ sum", "✓ aside", "✓ answer: done"):
        assert line_of(lines, words).rstrip()[-1] in "█▒·"


def test_the_critical_path_is_drawn_in_another_ink_than_the_rest():
    lines = drawn(story())

    assert Ink.CRITICAL.value in line_of(lines, "✓ sum")
    assert Ink.CRITICAL.value not in line_of(lines, "✓ aside")
    assert Ink.WORK.value in line_of(lines, "✓ aside")
    assert "  critical path: plan → load → sum → answer" in lines


def test_the_wait_for_a_retry_leads_to_the_bar_of_the_next_attempt():
    (line,) = [line for line in drawn(story()) if line.startswith("✓ load #2")]

    assert "·····█" in line


def test_a_failure_has_its_reason_below_it_and_nothing_of_it_is_obeyed():
    text = "\n".join(drawn(story()))

    assert "    ↳ logic: no �[31mroute�[0m [bold]at all[/bold]� second line" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_calls_of_one_tool_share_a_line_and_a_failed_one_has_its_own():
    lines = drawn(story())

    assert line_of(lines, "  └ ✓ search ×3")
    assert line_of(lines, "  └ ✗ search")
    assert "        ↳ no page" in [line.rstrip() for line in lines]
    assert sum("└ ✓ search" in line for line in drawn(story(), is_whole=True)) == 3


def test_the_numbers_are_at_the_end():
    text = "\n".join(drawn(story()))

    assert "3 of 3 tasks done · 4 attempts · 1 retry · 4 tool calls" in text
    assert "of work" in text
    assert "waiting in queues" in text


def test_a_request_that_goes_on_has_open_bars():
    log = planned(task("a"), task("b"), task("c"))
    log.own(reserved(("a", 1), ("b", 1)))
    start = Started(request_id=REQUEST, task_id="a", attempt=1, worker="w1", role="work", delivery=1, task_sequence=7)

    lines = drawn(log, 120, StoredEvent(START + 1, "worker/w1", start))

    assert lines[0] == f"◐ {REQUEST}  running: 0 of 3 tasks done, a running, b queued"
    assert line_of(lines, "◐ a").endswith("█▶")
    assert line_of(lines, "◌ b").endswith("·▶")
    assert "ready" in line_of(lines, "◌ c")
    assert any("▶ goes on" in line for line in lines)


def test_a_failed_request_says_why_at_the_top():
    log = planned(task("a", max_attempts=1))
    log.run(failure("a", message="the mill is broken"))
    log.own(answer().model_copy(update={"status": AnswerStatus.FAILED}))

    lines = drawn(log)

    assert lines[0] == f"✗ {REQUEST}  failed"
    assert "  a failed: the mill is broken" in lines


def test_a_large_request_shows_trouble_and_the_longest_and_counts_the_rest():
    log = planned(*(task(f"t{n}", max_attempts=1) for n in range(1_000)))
    for n in range(1_000):
        body = failure(f"t{n}", message="broken") if n == 500 else result(f"t{n}")
        log.run(body.model_copy(update={"seconds": 3.0 if n == 77 else 0.001}))
    log.own(answer())

    lines = drawn(log)

    assert len(lines) < MAX_LINES + 15
    assert line_of(lines, "✗ t500")
    assert line_of(lines, "✓ t77 ")
    assert f"  … {1_003 - MAX_LINES} more lines, the shortest ones, are not shown; --all shows them" in lines
    assert len(drawn(log, is_whole=True)) > 1_000


@given(logs(), events, st.sampled_from([20, 60, *WIDTHS]), st.booleans())
@settings(max_examples=40)
def test_any_log_can_be_drawn_within_the_terminal(
    entries: list[Entry], said: list[StoredEvent], width: int, is_whole: bool
):
    lines = drawn_of(entries, said, width, is_whole=is_whole)

    assert all(cell_len(line) <= width for line in lines)


@given(st.floats(-10, 2_000), st.floats(0, 2_000), st.sampled_from(list(Ink)), st.integers(10, 150))
def test_a_bar_is_as_wide_as_its_scale_and_never_empty(begin: float, seconds: float, ink: Ink, cells: int):
    bar = Scale(0.0, 1_000.0, cells).bar([Part(begin, begin + seconds, ink)], "").plain

    assert len(bar) == cells
    assert ink.value in bar


@given(st.text(), st.integers(1, 50))
def test_foreign_text_becomes_one_printable_line(text: str, limit: int):
    shown = plain(text, limit)

    assert not any(category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert "\u202e" not in shown
    assert len(shown) <= limit


def test_how_long_ago_is_said_in_the_largest_unit():
    assert [ago(seconds) for seconds in (-0.2, 0.9, 59.9, 60, 3599, 7_380, 400_000)] == [
        "0 s ago",
        "0 s ago",
        "59 s ago",
        "1 m ago",
        "59 m ago",
        "2 h ago",
        "4 d ago",
    ]


def test_durations_are_in_the_unit_that_people_use():
    assert [duration(seconds) for seconds in (0, 0.52, 0.9999, 2.414, 59.999, 185, 7_380)] == [
        "0 ms",
        "520 ms",
        "1.00 s",
        "2.41 s",
        "1 m 00 s",
        "3 m 05 s",
        "2 h 03 m",
    ]


@pytest.mark.parametrize("width", [60, *WIDTHS])
def test_an_id_is_shown_whole_however_long_it_is(width: int):
    name = "n" * 60 + "-end"
    log = planned(task(name), task("sum", name))
    log.run(failure(name))
    log.own(revision(name, 2))
    log.run(result(name, 2))

    lines = drawn(log, width)

    whole = "".join(lines)
    assert f"✗ {name}" in whole
    assert f"✓ {name} #2" in whole
    assert all(cell_len(line) <= width for line in lines)


def test_a_long_name_of_a_worker_keeps_its_beginning_and_its_end():
    log = planned(task("a"))
    log.run(result("a", worker="muster-worker-researcher-7d9f8b6c5-abcde"))

    row = line_of(drawn(log, 120), "✓ a")

    assert "worker-muster" in row
    assert "as work " in row


@given(st.text(max_size=40), st.integers(4, 30))
def test_what_is_fitted_has_exactly_so_many_cells(text: str, cells: int):
    assert cell_len(fit(text, cells)) == cells


def test_what_people_were_asked_and_what_they_said_have_lines_of_their_own():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("load"), task("sum")), approve=True))
    log.own(approval())
    log.time = START + 3
    log.own(decision("reply", "approve", by="client/ann"))
    log.own(reserved(("load", 1), ("sum", 1)))
    log.work(failure("load", is_final=True))
    log.time = START + 5
    log.own(order("retry", "load", 2))
    log.own(order("reassign", "sum", 2))

    lines = drawn(log)

    assert "2.98 s" in line_of(lines, "✓ asked a person")
    assert "    ↳ Carry out this plan?: reply approve by client/ann" in lines
    assert line_of(lines, "■ retry load").endswith("◆")
    assert "client/ann" in line_of(lines, "■ reassign sum to other")
    assert line_of(lines, "■ sum")
