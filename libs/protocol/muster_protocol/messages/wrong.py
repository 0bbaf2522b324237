"""What is wrong with a value, in plain words: pydantic's own speak of Python, of tuples and of validation."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails

from muster_protocol.subjects import ID_PATTERN

NAME = "use 1 to 64 letters (a-z), digits, - and _"
_BOUNDS = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
_KINDS = (  # how pydantic's names of errors begin
    ("int_", "a whole number"),
    ("float_", "a number"),
    ("bool_", "true or false"),
    ("finite_number", "a finite number"),
    ("string_type", "text"),
    ("tuple_", "a list"),
    ("list_", "a list"),
)


def reason_of(error: ErrorDetails) -> str:
    """Why a field of a message is refused."""
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "missing":
            return "is missing"
        case "too_short":
            return "needs at least one"
        case "too_long":
            return f"has more than {context['max_length']:,}"
        case "string_pattern_mismatch" if context["pattern"] == ID_PATTERN:
            return f"cannot be a name: {NAME}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "needs an object"
        case _:
            needed = needed_for(kind, context)
            return f"needs {needed}" if needed else error["msg"].removeprefix("Value error, ")


def needed_for(kind: str, context: Mapping[str, Any]) -> str:
    """What would have been right; empty where only pydantic knows."""
    bound = next((f"a number {word} {context[name]:g}" for name, word in _BOUNDS.items() if name in context), "")
    if kind in ("literal_error", "enum"):
        return f"one of {context.get('expected', '')}"
    return bound or next((words for start, words in _KINDS if kind.startswith(start)), "")
