"""Reads JSON objects that stand on the command line."""

import json
from typing import Any, cast

from muster_protocol.errors import Invalid


def json_object(text: str | None, option: str) -> dict[str, Any]:
    """The object, empty if nothing is given; anything else is a mistake that shows how one is written."""
    if text is None:
        return {}
    way_out = """write an object in quotes, such as '{"article": "apples"}'"""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{text[:80]!r} is not JSON ({error}); {way_out}", option) from None
    if not isinstance(found, dict):
        raise Invalid(f"{text[:80]!r} is no JSON object; {way_out}", option)
    return cast("dict[str, Any]", found)
