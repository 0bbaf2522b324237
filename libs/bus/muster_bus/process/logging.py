"""The log of a process: lines for people, or one JSON object for each line, from Muster and from every library.

One formatter for each: whatever a line is made of, no foreign line break or control character leaves it, no secret that
the process knows, and no user or password of an address.
"""

import json
import logging
import sys
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TextIO, cast

from opentelemetry import trace

from muster_bus.process.about import fields_of, worked_for
from muster_bus.process.printable import printable, printable_json
from muster_bus.process.settings import LogSettings
from muster_bus.redact import KNOWN, without_user_info
from muster_protocol.errors import error_class_of
from muster_protocol.sender import shown_name

FIELDS = ("worker", "status", "error_class")  # of `extra=`, beside those that say what the work is for
STACK = "  | "  # before each line of a stack: it never looks like a line of its own
_uncaught = logging.getLogger("muster.uncaught")


def set_up_logging(service: str, instance: str, settings: LogSettings, *, owns_stdout: bool = False) -> None:
    """Log to standard error, since standard output belongs to answers.

    A service answers nobody there (`owns_stdout`): what a role or a library prints is a line of the log like any other.
    """
    now: object = sys.stderr
    own = now.stream if isinstance(now, LoggedStream) else sys.stderr
    handler = logging.StreamHandler(own)
    handler.setFormatter(JsonLines(service, instance) if settings.is_json else TextLines(service, instance))
    root = logging.getLogger()
    root.handlers[:] = [handler]  # of libraries too: their lines are like ours
    root.setLevel(logging.WARNING)
    ours = logging.getLogger("muster")
    ours.handlers[:] = []
    ours.setLevel(settings.level.upper())
    logging.captureWarnings(True)
    sys.excepthook = _on_uncaught
    threading.excepthook = _on_uncaught_in_thread
    if settings.is_json or owns_stdout:
        sys.stderr = cast("TextIO", LoggedStream(own, "stderr"))  # all of it that is written to
    if owns_stdout and not isinstance(cast("object", sys.stdout), LoggedStream):
        sys.stdout = cast("TextIO", LoggedStream(sys.stdout, "stdout"))


class TextLines(logging.Formatter):
    """Lines for people."""

    def __init__(self, service: str, instance: str) -> None:
        super().__init__(f"%(asctime)s {shown_name(service, instance)}  %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        record.message = printable(_shown(record.getMessage()))
        record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        return line if not record.exc_info else f"{line}\n{_stack_lines(self.formatException(record.exc_info))}"


class JsonLines(logging.Formatter):
    """One JSON object for each line."""

    def __init__(self, service: str, instance: str) -> None:
        super().__init__()
        self._process = {"service": service} | ({"instance": instance} if instance else {})
        if service == "worker" and instance:
            self._process["worker"] = shown_name(service, instance)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            **self._process,
            "message": _shown(record.getMessage()),
        }
        if not record.name.startswith("muster."):
            line["logger"] = record.name
        about = fields_of(worked_for())
        more = {name: getattr(record, name, None) for name in (*about, *FIELDS)}
        line |= {name: value for name, value in {**about, **{n: v for n, v in more.items() if v}}.items() if value}
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            line |= {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
        if record.exc_info:
            line["stack"] = _shown(self.formatException(record.exc_info))
            if record.exc_info[1] is not None:
                line.setdefault("error_class", error_class_of(record.exc_info[1]))
        return printable_json(json.dumps(line, ensure_ascii=False, default=str))


class LoggedStream:
    """Standard output or error where every line is of the log: what is written to it is logged, line by line.

    Of a line that is written anew after a carriage return, as the bar of a progress is, the last state is logged.
    """

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream = stream
        self._log = logging.getLogger(name)
        self._rest = ""
        self._logging = threading.local()

    def write(self, text: str) -> int:
        if getattr(self._logging, "is_on", False):  # logging itself complains: it must not log that
            return len(text)
        *lines, rest = (self._rest + text).replace("\r\n", "\n").split("\n")
        self._rest = rest[max(0, rest.rfind("\r")) :]
        self._say(lines)
        return len(text)

    def flush(self) -> None:
        if not self._rest.startswith("\r"):  # a question, such as the prompt of a debugger
            rest, self._rest = self._rest, ""
            self._say([rest])
        self.stream.flush()

    def _say(self, lines: Iterable[str]) -> None:
        self._logging.is_on = True
        try:
            for line in lines:
                if last := line.rstrip("\r").rpartition("\r")[2].rstrip():
                    self._log.warning("%s", last)
        finally:
            self._logging.is_on = False

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.stream.fileno()


def _shown(text: str) -> str:
    return KNOWN(without_user_info(text))


def _stack_lines(stack: str) -> str:
    return "\n".join(f"{STACK}{printable(line)}" for line in _shown(stack).split("\n"))


def _on_uncaught(kind: type[BaseException], error: BaseException, stack: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _uncaught.critical("the process ends: %s: %s", kind.__name__, error, exc_info=(kind, error, stack))


def _on_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if issubclass(args.exc_type, SystemExit) or args.exc_value is None:
        return
    caught = (args.exc_type, args.exc_value, args.exc_traceback)
    name = args.thread.name if args.thread else "?"
    _uncaught.error("thread %s ends: %s: %s", name, args.exc_type.__name__, args.exc_value, exc_info=caught)
