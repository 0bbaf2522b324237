"""Whether an answer fits the schema that was asked for, and the JSON value that does. Pure, without a model.

Of a text that a model composed the JSON value in it is tried; otherwise the output, and the JSON value in its text.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from muster_agent.models.port import as_text
from muster_agent.output_schema import output_mistakes
from muster_protocol.messages import Output
from muster_supervisor.composing.merge import Draft

TOO_LONG = "it is too long for one answer"


def fitted(draft: Draft, schema: Mapping[str, Any]) -> Draft:
    """The draft with the value that fits; with what is wrong, by path, where none does."""
    if not draft.made_of or draft.is_fitted:
        return draft
    if draft.is_cut:
        return replace(draft, misfits=(TOO_LONG,))
    mistakes: list[str] = []
    for value in _values(draft):
        found = output_mistakes(value, schema)
        if not found:
            return replace(draft, is_fitted=True, value=value, text=as_text(value), misfits=())
        mistakes = mistakes or found
    return replace(draft, misfits=tuple(mistakes or mistakes_of(draft.text, schema)))


def mistakes_of(text: str, schema: Mapping[str, Any]) -> list[str]:
    """What a text lacks to be JSON of this schema."""
    try:
        value = _json_in(text)
    except ValueError as error:
        return [f"it is not JSON: {error}"]
    return output_mistakes(value, schema)


def _values(draft: Draft) -> Iterator[Output]:
    if draft.is_composed:
        yield from _json_of(draft.text)
        return
    yield draft.output
    if isinstance(draft.output, str):
        yield from _json_of(draft.output)
    elif len(draft.outputs) == 1 and not draft.is_one_answer:  # the one that is left of several
        (value,) = draft.outputs.values()
        yield value
        if isinstance(value, str):
            yield from _json_of(value)


def _json_of(text: str) -> Iterator[Output]:
    try:
        yield _json_in(text)
    except ValueError:
        return


def _json_in(text: str) -> Output:
    """The JSON value that a text is, also in a code fence."""
    return json.loads(text.strip().removeprefix("```json").removeprefix("```").removesuffix("```"))
