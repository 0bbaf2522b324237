"""What the span of an attempt says of its outcome."""

from collections.abc import Mapping

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from muster_bus.tracing import names
from muster_protocol.messages import ResultStatus, Usage
from muster_worker.outcome import Outcome
from muster_worker.spans import record_outcome

COSTS = {names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.USD}


def said_of(outcome: Outcome) -> Mapping[str, object]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    span = provider.get_tracer("test").start_span("attempt")
    record_outcome(span, outcome)
    span.end()
    (found,) = exporter.get_finished_spans()
    return dict(found.attributes or {})


def test_an_attempt_that_called_a_model_says_what_that_cost():
    used = Usage(input_tokens=7, output_tokens=3, usd=0.5, model_calls=1)

    said = said_of(Outcome(ResultStatus.DONE, "scripted", "found", usage=used))

    assert {name: said[name] for name in COSTS} == {names.INPUT_TOKENS: 7, names.OUTPUT_TOKENS: 3, names.USD: 0.5}


def test_an_attempt_that_called_no_model_says_nothing_of_tokens():
    assert not COSTS & said_of(Outcome(ResultStatus.DONE, "scripted", "found")).keys()
