"""A collector for the tests that takes OTLP over gRPC: prints its port, then the name of each span, a line each.

A process of its own, because gRPC's threads do not go well with a test that starts processes.
"""

from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


def export(request: ExportTraceServiceRequest, _: object) -> ExportTraceServiceResponse:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                print(span.name, flush=True)
    return ExportTraceServiceResponse()


def main() -> None:
    method = grpc.unary_unary_rpc_method_handler(
        export, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
    )
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"Export": method})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
