"""What a tool is: a name, a schema, and a function that takes checked arguments and returns text."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from muster_agent.functions import call
from muster_agent.models.port import ToolSpec
from muster_protocol.errors import Invalid

MAX_OUTPUT = 50_000  # characters; more would leave too little of the context window for the task


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a role's model may call."""

    spec: ToolSpec
    arguments: type[BaseModel]
    function: Callable[..., Any]

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Check the arguments, call the function, and return its output as text."""
        checked = self.arguments.model_validate(dict(arguments))
        values = {name: getattr(checked, name) for name in self.arguments.model_fields}
        output = await call(self.function, **values)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
        return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}\n[cut off after {MAX_OUTPUT:,} characters]"


def tool_of(function: Callable[..., Any], description: str = "") -> Tool:
    """A tool from a function: the schema from its signature, the description from its docstring."""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Invalid(f"{function.__name__} has the parameter *{name}; a tool names all its parameters", "tools")
        kind: Any = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
    arguments = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    schema = {key: value for key, value in arguments.model_json_schema().items() if key != "title"}
    text = description or inspect.getdoc(function) or function.__name__.replace("_", " ")
    return Tool(ToolSpec(function.__name__, text, schema), arguments, function)


def error_text(error: Exception) -> str:
    """An error of a tool as text that a model can act on."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    problems = (f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
    return "bad arguments: " + "; ".join(problems)
