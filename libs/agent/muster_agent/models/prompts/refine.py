"""The prompt by which a model describes a failed task better."""

import json
from typing import cast

from muster_agent.models.port import RefineBrief
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.text import Prompt, prompt_of

MAX_FIELDS, MAX_DEPTH = 20, 4  # of inputs: their shape says what they are, not what is in them


def refine_prompt(brief: RefineBrief, data: Boundary) -> Prompt:
    wanted = brief.expected_output if isinstance(brief.expected_output, str) else dict(brief.expected_output or {})
    return prompt_of(
        "refine",
        data_rule=data.rule,
        task=data("task", brief.description),
        last=data("task of the failed attempt", brief.last) if brief.last else "",
        error=data("error", brief.error),
        notes="\n".join(data.request(note) for note in brief.notes),
        role="" if brief.role is None else f"{brief.role.name}: {brief.role.description}".rstrip(": "),
        persona=data("persona of the worker", brief.persona.strip()) if brief.persona.strip() else "",
        tools=", ".join(brief.tools),
        no_tools="" if brief.tools or brief.role is None else "none",
        expected=data("expected output", wanted) if wanted else "",
        inputs=json.dumps(shape_of(dict(brief.inputs)), ensure_ascii=False) if brief.inputs else "",
        attempts_left=str(brief.attempts_left),
    )


def shape_of(value: object, depth: int = 0) -> object:
    """The names and types of a JSON value, without its texts and numbers."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if depth == MAX_DEPTH:
            return f"an object of {len(fields)} fields"
        shown = {name: shape_of(fields[name], depth + 1) for name in list(fields)[:MAX_FIELDS]}
        return {**shown, "…": f"{len(fields) - MAX_FIELDS} more"} if len(fields) > MAX_FIELDS else shown
    if isinstance(value, list):
        found = cast("list[object]", value)
        if not found or depth == MAX_DEPTH:
            return f"a list of {len(found)}"
        return [shape_of(found[0], depth + 1), f"{len(found)} in all"]
    if isinstance(value, bool | None):
        return "nothing" if value is None else "true or false"
    return "text" if isinstance(value, str) else "number"
