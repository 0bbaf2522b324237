"""Makes the provider of one service's spans: who it is, which ids spans get, how they leave.

Imported only where an endpoint is set: the SDK takes a fifth of a second and 15 MB.
"""

from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from muster_bus.process.version import version
from muster_bus.tracing.computed import preset_ids
from muster_bus.tracing.express import Express
from muster_bus.tracing.hold import Hold
from muster_bus.tracing.redacting import RedactingExporter
from muster_protocol.errors import Misconfigured

# Ours where the environment says nothing. They are passed on and not set: an application's own SDK reads them too.
TIMEOUT_SECONDS = 3.0  # a dead collector must not hold up a stop
DELAY_MILLISECONDS = 1000.0
QUEUE_SIZE = 8192  # four times the SDK's: a burst of tasks is not a reason to lose spans


class PresetIds(RandomIdGenerator):
    """Random ids, unless the next span's are computed: of its trace if it is a root, and of itself."""

    def generate_trace_id(self) -> int:
        return preset_ids.get()[0] or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return preset_ids.get()[1] or super().generate_span_id()


class Exporting(NamedTuple):
    """How the spans of one service are made and leave."""

    provider: TracerProvider
    hold: Hold
    express: Express


def make_provider(service: str, instance: str, otel_env: Mapping[str, str]) -> Exporting:
    """A provider that exports to where OTEL_EXPORTER_OTLP_ENDPOINT says; OTEL_TRACES_SAMPLER says how many."""
    ours = {
        "service.name": f"muster-{service}",
        "service.namespace": "muster",
        "service.instance.id": instance,
        "service.version": version(),
    }
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over ours; `Resource.create` alone would have it the other way.
    resource = Resource.create({**ours, **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=resource, id_generator=PresetIds(), shutdown_on_exit=False)
    batch = BatchSpanProcessor(
        RedactingExporter(_exporter(otel_env)),
        max_queue_size=None if otel_env.get("OTEL_BSP_MAX_QUEUE_SIZE") else QUEUE_SIZE,
        schedule_delay_millis=None if otel_env.get("OTEL_BSP_SCHEDULE_DELAY") else DELAY_MILLISECONDS,
    )
    express = Express(RedactingExporter(_exporter(otel_env)))
    hold = Hold(batch, express)
    provider.add_span_processor(hold)
    return Exporting(provider, hold, express)


def _exporter(otel_env: Mapping[str, str]) -> SpanExporter:
    """The exporter of the protocol that is set. One that is not there would lose every span, so it is an error."""
    of_traces, of_all = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    variable = of_traces if otel_env.get(of_traces) else of_all
    protocol = otel_env.get(variable) or "http/protobuf"
    is_timed = otel_env.get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT") or otel_env.get("OTEL_EXPORTER_OTLP_TIMEOUT")
    timeout = None if is_timed else TIMEOUT_SECONDS
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(timeout=timeout)
    if protocol != "grpc":
        raise Misconfigured(f"{variable}: {protocol!r} is not supported; use http/protobuf or grpc")
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
    except ImportError as error:
        raise Misconfigured(
            f"{variable}: grpc needs the extra `pip install 'muster-cli[otlp-grpc]'` ({error}); or set it to "
            "http/protobuf and the endpoint to the collector's HTTP port, usually 4318"
        ) from None
    return GrpcSpanExporter(timeout=timeout)
