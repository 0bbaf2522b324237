"""What a model without a mind replies: what it was asked, or the smallest value that fits the schema it is bound to."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

_ROLE = re.compile(r"^- \S+ \(tags: ([^,)\s]+)", re.MULTILINE)  # as a planner reads of the workers
_REQUEST = re.compile(r"<request-(\w+)>\n(.*?)\n</request-\1>", re.DOTALL)
MAX_SAID = 2_000  # characters


def echo(system: str, asked: str, schema: Mapping[str, Any] | None) -> str:
    """The reply to a prompt. A plan has one task, for the first role that the prompt names."""
    request = _REQUEST.search(asked)
    said = (request[2] if request else asked.partition("\n\n")[0].removeprefix("Task: "))[:MAX_SAID]
    if schema is None:
        return said
    value = _value(schema, schema, "", said)
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    role = _ROLE.search(system)
    if role is not None and "tasks" in properties and "goal" in properties:
        task = _value(properties["tasks"]["items"], schema, "", said)
        fields["tasks"] = [{**cast("dict[str, Any]", task), "id": "echo", "tag": role[1]}]
    return json.dumps(fields or value, ensure_ascii=False)


def _value(schema: Mapping[str, Any], whole: Mapping[str, Any], name: str, said: str) -> object:
    if "$ref" in schema:
        schema = whole.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], whole, name, said)
    if chosen := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return chosen[0]
    if schema.get("type") == "object":
        properties = cast("Mapping[str, Any]", schema.get("properties") or {})
        return {key: _value(properties[key], whole, key, said) for key in schema.get("required") or ()}
    words = said if name in ("description", "goal") else "" if name in _EMPTY else "echo"
    plain: Mapping[object, object] = {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}
    return plain.get(schema.get("type"), words)


_EMPTY = ("over", "worker", "gather", "inputs", "output_schema")  # of tasks that need none
