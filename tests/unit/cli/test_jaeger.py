"""What Jaeger has of a request, compared with its log, over real HTTP."""

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from muster_bus.broker.embedded import free_port
from muster_cli.jaeger.compare import Comparison, compare
from muster_cli.jaeger.fetch import JaegerAway, fetch_spans
from muster_cli.view.comparison import show_comparison
from muster_client.timeline import StoredEvent, Timeline, timeline
from muster_protocol.messages import Started
from tests.jaeger_server import Reply, SpanOf, jaeger, trace_of
from tests.unit.protocol.log_builder import REQUEST, START, answer, failure, planned, reserved, result, revision, task

TRACE = "5f" * 16
CALL = {"tool": "search", "at": 0.0, "seconds": 0.1, "error": None}


def attempt(
    task_id: str, number: int, span_id: str, delivery: int | None = 1, *, request: str = REQUEST, parent: str = "01"
) -> SpanOf:
    attributes = {
        "muster.task.id": task_id,
        "muster.task.attempt": number,
        "muster.request.id": request,
        **({} if delivery is None else {"muster.delivery": delivery}),
    }
    return SpanOf("invoke_agent work", span_id, parent, "muster-worker", attributes)


WHOLE = (
    SpanOf("invoke_workflow default", "01"),
    SpanOf("plan default", "02", "01"),
    attempt("a", 1, "03"),
    attempt("a", 2, "04"),
    attempt("b", 1, "05"),
    SpanOf("execute_tool search", "06", "05", "muster-worker"),
    SpanOf("chat offline", "07", "05", "muster-worker"),
    SpanOf("publish tasks", "0d", "01", attributes={"messaging.batch.message_count": 2}),
    SpanOf("publish tasks", "0e", "01", attributes={"messaging.batch.message_count": 1}),
    SpanOf("refine work", "0f", "01", attributes={"muster.task.id": "a", "muster.task.attempt": 2}),
    SpanOf("answer done", "08", "01"),
)


def story(*events: StoredEvent) -> Timeline:
    """Task a failed once; task b called a tool."""
    log = planned(task("a"), task("b"))
    log.run(failure("a"))
    log.own(revision("a", 2))
    log.run(result("a", 2))
    log.own(reserved(("b", 1)))
    log.time += 60
    log.work(result("b").model_copy(update={"tool_calls": (CALL,)}))
    log.own(answer())
    return replace(timeline(REQUEST, log.entries, events, now=START + 100), trace_id=TRACE)


async def compared(reply: Reply | None, found: Timeline | None = None) -> Comparison:
    found = found or story()
    with jaeger({} if reply is None else {TRACE: reply}) as url:
        return compare(found, url, await fetch_spans(url, TRACE))


def said(comparison: Comparison) -> str:
    text = io.StringIO()
    show_comparison(Console(file=text, width=120), comparison)
    return text.getvalue()


async def test_a_trace_that_has_everything_is_complete():
    comparison = await compared(trace_of(*WHOLE))

    assert comparison.is_complete
    assert comparison.services == ("muster-supervisor", "muster-worker")
    assert [check.found for check in comparison.checks] == [1, 1, 3, 1, 1, 1, 1, 1, 1]
    assert "✓ the trace is complete" in said(comparison)
    assert "one root: invoke_workflow default" in said(comparison)


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        ("invoke_workflow", "request"),
        ("plan", "plan"),
        ("answer", "answer"),
        ("execute_tool", "call of search"),
        ("publish", "published tasks"),
        ("refine", "revision of attempt 2 of a"),
    ],
)
async def test_what_is_missing_is_named(left_out: str, missing: str):
    comparison = await compared(trace_of(*(span for span in WHOLE if not span.name.startswith(left_out))))

    assert [check.what for check in comparison.missing] == [missing]
    assert not comparison.is_complete
    assert re.search(f"no span: .*{missing}", said(comparison))


async def test_an_attempt_without_a_span_is_named_with_its_worker_and_role():
    comparison = await compared(trace_of(*(span for span in WHOLE if span.id != "04")))

    assert [check.what for check in comparison.missing] == ["attempt 2 of a (worker-w1 as work)"]


async def test_a_span_of_another_request_in_the_same_trace_counts_for_nothing():
    others = attempt("a", 2, "09", request="another")

    comparison = await compared(trace_of(*(span for span in WHOLE if span.id != "04"), others))

    assert len(comparison.missing) == 1


async def test_spans_that_do_not_say_their_delivery_are_matched_by_attempt():
    comparison = await compared(trace_of(*(span if span.id != "03" else attempt("a", 1, "03", None) for span in WHOLE)))

    assert comparison.is_complete


async def test_the_run_of_a_worker_that_died_may_lack_its_span():
    lost = Started(request_id=REQUEST, task_id="b", attempt=1, worker="dead", role="work", delivery=0, task_sequence=7)

    comparison = await compared(trace_of(*WHOLE), story(StoredEvent(START + 10, "worker/dead", lost)))

    assert comparison.is_complete
    assert "(worker-dead as work): its worker died before it could export it" in said(comparison)


async def test_an_attempt_that_its_supervisor_gave_up_may_lack_its_span():
    log = planned(task("a", max_attempts=1))
    log.own(reserved(("a", 1)))
    log.own(failure("a").model_copy(update={"worker": ""}))
    log.own(answer())
    said_start = Started(
        request_id=REQUEST, task_id="a", attempt=1, worker="w1", role="work", delivery=1, task_sequence=7
    )
    found = timeline(REQUEST, log.entries, [StoredEvent(START, "worker/w1", said_start)], now=START + 100)

    spans = (span for span in WHOLE if not span.name.startswith("invoke_agent") and span.parent != "05")
    comparison = await compared(trace_of(*spans), found)

    assert comparison.is_complete
    assert "(worker-w1 as work): its worker gave no result in time" in said(comparison)


async def test_two_roots_and_an_orphan_are_not_one_tree():
    spans = [*WHOLE, SpanOf("invoke_workflow default", "0a"), SpanOf("chat offline", "0b", "ff")]

    comparison = await compared(trace_of(*spans))

    assert not comparison.is_complete
    assert "✗ 2 roots instead of one" in said(comparison)
    assert "✗ orphan: chat offline: its parent was not exported" in said(comparison)
    assert comparison.as_json()["orphans"] == ["chat offline"]


async def test_a_trace_that_jaeger_does_not_know_lacks_everything_and_says_why_that_may_be():
    comparison = await compared(None)

    assert (comparison.spans, comparison.is_complete, len(comparison.missing)) == (None, False, 9)
    assert f"has no trace {TRACE}" in said(comparison)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in said(comparison)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<!doctype html><title>Jaeger UI</title>"),
        Reply(200, b"[1, 2]"),
        Reply(200, b'{"result": 3}'),
        Reply(200, b'{"result": {"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}}'),
        Reply(200, b"[" * 100_000),
        Reply(404, b"404 page not found"),
        Reply(500, b'{"error": {"message": "storage"}}'),
    ],
    ids=["a page", "a list", "a number", "no span", "deep", "another server", "an error"],
)
async def test_what_is_not_jaegers_answer_is_an_error_that_names_the_address_and_the_way_out(reply: Reply):
    with pytest.raises(JaegerAway, match=r"http://127\.0\.0\.1:\d+/api/v3/traces/.*--jaeger http"):
        await compared(reply)


@pytest.mark.parametrize("url", ["http://", "http://a b", f"http://{'x' * 70}", "http://127.0.0.1:99999"])
async def test_an_address_that_is_none_is_an_error_as_well(url: str):
    with pytest.raises(JaegerAway, match="no Jaeger answers at"):
        await fetch_spans(url, TRACE)


async def test_a_jaeger_that_is_not_there_is_an_error_that_names_the_address():
    url = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(JaegerAway, match=f"no Jaeger answers at {url} .*--jaeger http://localhost:16686"):
        await fetch_spans(url, TRACE)


async def test_a_name_with_control_characters_cannot_reach_the_terminal():
    evil = SpanOf("evil\x1b[31m[bold]", "0c", "dd")

    shown = said(await compared(trace_of(*WHOLE, evil)))

    assert "\x1b" not in shown
    assert "[bold]" in shown
    assert json.dumps((await compared(trace_of(*WHOLE, evil))).as_json())
