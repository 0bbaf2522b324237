"""The subjects of the wire, and the ids that may stand in them."""

import hashlib
import re
from typing import Annotated, Literal, get_args

from pydantic import StringConstraints

ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
_ID = re.compile(ID_PATTERN[1:-1])

# Aliases instead of NewTypes: the pattern is checked wherever a message is read, so a plain str cannot slip by.
RequestId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
TaskId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Tag = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Purpose = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_:.-]{0,200}$")]  # of a model call of the owner's
TeamName = Annotated[str, StringConstraints(pattern=ID_PATTERN)]

Priority = Literal["high", "normal", "low"]  # of a request; its tasks travel in the lane of that name
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first

ERRORS = "errors"
ALL_REQUESTS = "requests.*"
ALL_TASKS = "tasks.>"  # of all lanes
ALL_RESULTS = "results.*"
ALL_LIVE = "live.results.*"
ALL_EVENTS = "events.*"
ALL_CONTROL = "control.*"
ALL_TURNS = "turns.*.*"

STREAMS = {  # by the first token of the subjects that they store
    "requests": "REQUESTS",
    "tasks": "TASKS",
    "results": "RESULTS",
    "events": "EVENTS",
    "callbacks": "CALLBACKS",
    "control": "CONTROL",
    "turns": "TURNS",
    "errors": "ERRORS",
}

TEMPLATES = {  # what stands for the changing token of a subject, in traces
    "requests": "requests.{team}",
    "tasks": "tasks.{tag}",
    "results": "results.{request_id}",
    "events": "events.{request_id}",
    "callbacks": "callbacks.{team}",
    "control": "control.{request_id}",
    "turns": "turns.{request_id}.{task_id}",
    "errors": "errors",
}


def requests(team: str) -> str:
    return f"requests.{team}"


def tasks(tag: str, priority: Priority = "normal") -> str:
    """The normal lane of a tag has the tag's own subject, the others are under it."""
    return f"tasks.{tag}" if priority == "normal" else f"tasks.{tag}.{priority}"


def lane_of(subject: str) -> tuple[str, str]:
    """The tag of a task's subject, and the priority."""
    _, tag, *priority = subject.split(".")
    return tag, priority[0] if priority else "normal"


def callbacks(team: str) -> str:
    return f"callbacks.{team}"


def results(request_id: str) -> str:
    return f"results.{request_id}"


def live(request_id: str) -> str:
    """The log of a request as the broker repeats it after each commit."""
    return f"live.results.{request_id}"


def events(request_id: str) -> str:
    return f"events.{request_id}"


def control(request_id: str) -> str:
    return f"control.{request_id}"


def turns(request_id: str, task_id: str) -> str:
    """What the model roles do for a task; `*` stands for all tasks of the request."""
    return f"turns.{request_id}.{task_id}"


def stream_of(subject: str) -> str:
    """The stream that stores a subject; buckets are streams too."""
    first, *rest = subject.split(".", 2)
    match first:
        case "$KV":
            return f"KV_{rest[0]}"
        case "$O":
            return f"OBJ_{rest[0]}"
        case _:
            return STREAMS[first]


def template_of(subject: str) -> str:
    """A subject with its changing token named: there are as many of these as kinds of subject."""
    return TEMPLATES[subject.partition(".")[0]]


def last_token(subject: str) -> str:
    return subject.rsplit(".", 1)[-1]


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether it is a whole number that fits into 64 bits, in plain digits."""
    return text.isascii() and text.isdigit() and len(text) < 19


def as_id(text: str) -> str:
    """An id stays as it is; any other text is hashed to one, so that it can never break a subject."""
    return text if is_id(text) else hashlib.sha256(text.encode()).hexdigest()[:32]


def request_id(message_id: str | None, body_id: str | None, sequence: int, body: bytes) -> str:
    """The message id if set, else the body's, else one that every client can know from its publish ack."""
    return as_id(message_id or body_id or f"{sequence}-{hashlib.sha256(body).hexdigest()[:12]}")
