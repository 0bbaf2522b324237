"""Every text of a message is either free text, from which secrets are taken out, or a name, and known to be one."""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.types import StringConstraints

from muster_protocol.messages import MESSAGES, Message, Request

# What Muster writes itself or takes from the team file: whoever compares or looks up needs them as they are.
NAMES = {
    *(
        "instance",
        "worker",
        "role",
        "by",
        "asked_by",
        "planner",
        "model",
        "other_models",
        "sender",
        "subject",
        "stream",
    ),
    *("other_models", "request_hash", "trace_id", "request_id", "what", "first", "second", "error_class"),
    *("cause", "who", "choices", "choice", "otherwise"),
    *("callback_url", "host", "grown_by", "fits", "key"),
}
# A request is what the work is about, and the hash of its body is what its id is compared by (decision 30).
LEFT_AS_IT_IS = {Request}


def texts(of: Any, path: str, metadata: tuple[Any, ...] = ()) -> Iterator[str]:
    """The paths of all texts in a type, except for ids and words of a closed list."""
    if any(isinstance(found, StringConstraints) for found in metadata) or get_origin(of) is Literal:
        return
    if of is str or of is Any:
        yield path
    elif isinstance(of, type) and issubclass(of, BaseModel):
        for name, field in of.model_fields.items():
            written = field.serialization_alias or name
            yield from texts(field.annotation, f"{path}.{written}" if path else written, tuple(field.metadata))
    elif not (isinstance(of, type) and issubclass(of, Enum)):
        for part in get_args(of):
            yield from texts(part, path, getattr(part, "__metadata__", ()))


def unlisted(kind: type[Message], free_text: tuple[str, ...]) -> set[str]:
    return {
        path
        for path in texts(kind, "")
        if path.rpartition(".")[2] not in NAMES
        and not any(path == listed or path.startswith(f"{listed}.") for listed in free_text)
    }


@pytest.mark.parametrize("kind", [kind for kind in MESSAGES if kind not in LEFT_AS_IT_IS], ids=lambda kind: kind.kind)
def test_every_text_that_a_person_or_a_model_can_write_is_listed(kind: type[Message]):
    assert unlisted(kind, kind.free_text) == set()
    assert set(kind.free_text) - set(texts(kind, "")) == set()


@pytest.mark.parametrize(("kind", "left_out"), [(kind, path) for kind in MESSAGES for path in kind.free_text])
def test_one_that_is_forgotten_is_found(kind: type[Message], left_out: str):
    assert unlisted(kind, tuple(path for path in kind.free_text if path != left_out)) == {left_out}
