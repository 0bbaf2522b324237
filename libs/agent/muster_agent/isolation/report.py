"""What a function returned or raised, as a message: the worker says of it what it would say of its own."""

import errno
import json
from typing import Any

from muster_agent.isolation.frames import MAX_BYTES
from muster_agent.isolation.messages import Raised, Returned
from muster_agent.stacks import own_frames, place_of, stack_of
from muster_agent.tools.tool import error_text
from muster_protocol.errors import MusterError, Terminal, cause_of, error_class_of

MAX_OUTPUT = MAX_BYTES // 4  # JSON within JSON, and one of four hundred answers must not fill the worker's memory
MAX_TEXT = 20_000  # of an error: the worker redacts it, and then cuts it shorter
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN)


def returned(output: Any, tasks: str = "[]", *, has_started: bool = False) -> Returned | Raised:
    """The message with an output; if it is not JSON, or too much of it, that is an error of the function."""
    kind = type(output).__name__
    try:
        text = json.dumps(output, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        return _bad(f"the output of type {kind} is not JSON: {error}", has_started=has_started)
    if size > MAX_OUTPUT:
        words = f"the output has {size:,} bytes; the most is {MAX_OUTPUT:,}: return less, or the name of a file"
        return _bad(words, has_started=has_started)
    return Returned(output=text, tasks=tasks, has_started=has_started)


def raised_by(error: BaseException, memory_mb: int, *, has_started: bool = False) -> Raised:
    """The message with an error."""
    error = cause_of(error)
    if isinstance(error, MemoryError):
        text = f"MemoryError: the function used more than {memory_mb} MB of memory; use less, or raise memory_mb"
        place = place_of(error)
        return Raised(
            error_class="resource", text=text, said=text, place=place, has_started=has_started, is_out_of_memory=True
        )
    is_ours = isinstance(error, MusterError) and bool(str(error))
    text = str(error) if is_ours else f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    has_stack = not is_ours or bool(own_frames(error))
    no_room = isinstance(error, OSError) and error.errno in _NO_ROOM
    return Raised(
        error_class="resource" if no_room else error_class_of(error),
        text=encodable(text[:MAX_TEXT]),
        said=encodable(error_text(error)[:MAX_TEXT]),
        place=encodable(place_of(error)),
        stack=encodable(stack_of(error)[-MAX_TEXT:]) if has_stack else None,
        is_final=isinstance(error, Terminal),
        has_started=has_started,
    )


def _bad(text: str, *, has_started: bool) -> Raised:
    text = encodable(text[:MAX_TEXT])
    return Raised(error_class="bad_output", text=text, said=text, has_started=has_started)


def encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()  # the name of a file may not be Unicode
