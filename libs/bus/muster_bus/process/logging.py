"""The log of a process: lines for people, or one JSON object for each line."""

import json
import logging
import sys

from opentelemetry import trace

from muster_bus.process.settings import LogSettings


def set_up_logging(service: str, instance: str, settings: LogSettings) -> None:
    """Log to standard error, since standard output belongs to answers."""
    handler = logging.StreamHandler(sys.stderr)
    if settings.is_json:
        handler.setFormatter(_JsonLines(service, instance))
    else:
        handler.setFormatter(logging.Formatter(f"%(asctime)s {service}-{instance}  %(message)s", "%H:%M:%S"))
    root = logging.getLogger("muster")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(settings.level.upper())


class _JsonLines(logging.Formatter):
    def __init__(self, service: str, instance: str) -> None:
        super().__init__()
        self._process = {"service": service, "instance": instance}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            **self._process,
            "message": record.getMessage(),
        }
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            line |= {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
