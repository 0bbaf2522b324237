"""Spans without a broker: names as the conventions have them, what is held back, what is cut, what is left alone."""

import importlib
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Sequence

import opentelemetry.semconv._incubating.attributes as incubating
import opentelemetry.semconv.attributes as stable
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer, set_span_in_context

from muster_bus.process.settings import read_settings
from muster_bus.tracing import hold, names
from muster_bus.tracing.content import MAX_CONTENT, MAX_DESCRIPTION, content, one_line
from muster_bus.tracing.context import parsed, trace_id_of, valid, workflow_id_of, written
from muster_bus.tracing.express import Express
from muster_bus.tracing.hold import Hold
from muster_bus.tracing.tracing import OFF, Tracing, inject
from muster_protocol.errors import Invalid

ATTRIBUTES = {
    value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value
}
NOT_IN_THE_PACKAGE_YET = {"gen_ai.workflow.name"}  # the conventions for generative AI have moved out of it
TRACEPARENT = f"00-{'ab' * 16}-{'cd' * 8}-01"


def of_the_conventions() -> set[str]:
    found: set[str] = set()
    for package in (stable, incubating):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            values = vars(importlib.import_module(module.name)).values()
            found.update(value for value in values if isinstance(value, str))
    return found


class Local:
    """A provider whose spans go through a hold into memory."""

    def __init__(self) -> None:
        self.batch, self.at_once = InMemorySpanExporter(), InMemorySpanExporter()
        self.express = Express(self.at_once)
        self.hold = Hold(SimpleSpanProcessor(self.batch), self.express)
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(self.hold)

    @property
    def tracer(self) -> Tracer:
        return self._provider.get_tracer("test")

    @property
    def exported(self) -> list[str]:
        return [span.name for span in self.batch.get_finished_spans()]


class Deaf(SpanExporter):
    """A collector that is away, until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        assert spans
        self.go.wait(10)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.go.set()


def test_every_attribute_is_of_a_convention_or_ours():
    known = of_the_conventions() | NOT_IN_THE_PACKAGE_YET

    assert {name for name in ATTRIBUTES if not name.startswith(("muster.", "http"))} <= known
    assert not {name for name in ATTRIBUTES if name.startswith("muster.")} & known


def test_no_two_rules_fit_one_name():
    examples = ["invoke_workflow t", "invoke_agent r", "publish requests.{team}", "publish tasks", "plan t", "chat m"]
    examples += [
        "execute_tool x",
        "lint",
        "refine a",
        "compose",
        "grow over",
        "wait for person plan",
        "conflict",
        "take over",
        "answer done",
        "POST /v1/requests",
    ]

    assert [sum(rule.fits(name) for rule in names.SPANS) for name in examples] == [1] * len(names.SPANS)


def test_a_span_is_held_until_its_local_root_has_ended():
    local = Local()

    with local.tracer.start_as_current_span("task"):
        with local.tracer.start_as_current_span("chat"), local.tracer.start_as_current_span("retry"):
            pass
        assert local.exported == []

    assert sorted(local.exported) == ["chat", "retry", "task"]


def test_a_span_under_a_root_that_has_ended_is_not_held():
    local = Local()
    root = local.tracer.start_span("task")
    child = local.tracer.start_span("slow tool", set_span_in_context(root))
    root.end()
    child.end()
    local.tracer.start_span("late tool", set_span_in_context(root)).end()

    assert local.exported == ["task", "slow tool", "late tool"]


def test_what_a_child_opens_after_its_root_has_ended_is_not_held():
    local = Local()
    root = local.tracer.start_span("task")
    child = local.tracer.start_span("slow tool", set_span_in_context(root))
    root.end()
    local.tracer.start_span("call of the slow tool", set_span_in_context(child)).end()
    child.end()

    assert local.exported == ["task", "call of the slow tool", "slow tool"]


def test_what_is_held_is_bounded_and_what_is_dropped_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hold, "MAX_HELD", 3)
    local = Local()

    with local.tracer.start_as_current_span("task"):
        for _ in range(5):
            local.tracer.start_span("chat").end()
    with local.tracer.start_as_current_span("next"):
        local.tracer.start_span("chat").end()

    assert local.exported == ["chat", "chat", "chat", "task", "chat", "next"]
    assert local.hold.dropped == 2


def test_an_urgent_span_leaves_at_once_with_all_that_hangs_under_it():
    local = Local()

    with local.tracer.start_as_current_span("publish") as span:
        local.hold.mark_urgent(span.get_span_context().span_id)
        local.tracer.start_span("inside").end()
    local.express.settled().result(5)

    assert [span.name for span in local.at_once.get_finished_spans()] == ["inside", "publish"]
    assert local.exported == []


def test_a_collector_that_takes_nothing_is_known_to_be_away():
    deaf = Deaf()
    express = Express(deaf)
    span = Local().tracer.start_span("one")
    assert isinstance(span, ReadableSpan)

    express.send([span])
    given_up, settled = express.settled(), express.settled()
    given_up.cancel()
    assert not settled.done()
    deaf.go.set()
    settled.result(5)

    assert express.is_away


def test_without_an_endpoint_nothing_of_the_sdk_is_imported():
    code = "import sys, muster_client, muster_bus.process.service, muster_agent.loop\n"
    code += "from muster_bus.tracing.tracing import OFF\nwith OFF.span('x', {}): pass\n"
    code += "assert not [name for name in sys.modules if name.startswith('opentelemetry.sdk')]"

    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_a_service_that_does_not_trace_passes_on_what_it_got_and_nothing_else():
    assert OFF.request("r1", {"traceparent": TRACEPARENT, "other": "x"}).carrier == {"traceparent": TRACEPARENT}
    assert OFF.request("r1", {"traceparent": "garbage\r\nx: y"}).carrier == {}
    assert OFF.request("r1", None).trace_id == trace_id_of("r1")
    headers: dict[str, str] = {}
    inject(headers, None)
    assert headers == {}


@given(st.text())
def test_ids_that_a_request_names_are_valid_and_differ(request_id: str):
    traceparent = f"00-{trace_id_of(request_id)}-{workflow_id_of(request_id)}-01"

    span = parsed(traceparent)

    assert span is not None
    assert written(span) == traceparent
    assert valid({"traceparent": traceparent}) == {"traceparent": traceparent}


@given(st.text(max_size=MAX_CONTENT * 2))
def test_content_is_bounded(text: str):
    assert len(content(f"{text}{text}")) <= MAX_CONTENT + 30


@given(st.text())
def test_a_description_is_one_short_line(text: str):
    shown = one_line(text)

    assert len(shown) <= MAX_DESCRIPTION
    assert not any(ord(character) < 32 for character in shown)


def test_content_is_shown_or_not_and_nothing_else():
    assert [read_settings({"MUSTER_TRACE_CONTENT": text}).trace.has_content for text in "01"] == [False, True]
    with pytest.raises(Invalid, match="MUSTER_TRACE_CONTENT: 'yes' is neither 0 nor 1"):
        read_settings({"MUSTER_TRACE_CONTENT": "yes"})


def test_tracing_that_is_off_has_no_provider():
    assert (Tracing().is_on, Tracing().provider) == (False, None)


def test_a_service_that_does_not_trace_looks_at_no_clock():
    Tracing().watch()  # there is no event loop in which it could look again
