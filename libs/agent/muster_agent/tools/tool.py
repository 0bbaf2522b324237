"""What a tool is: a name, a schema, and a function that takes checked arguments and returns text."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from muster_agent.functions import call
from muster_agent.isolation.errors import RaisedInside
from muster_agent.models.port import ToolSpec
from muster_protocol.errors import Invalid

Effect = Literal["keyed", True]  # on the outside world: with a key by which its receiver knows a repeated call, or not
KEYED: Effect = "keyed"
KEY = "key"  # the parameter of a keyed tool that no model sees
MAX_OUTPUT = 50_000  # characters; more would leave too little of the context window for the task


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a role's model may call."""

    spec: ToolSpec
    arguments: type[BaseModel]
    function: Callable[..., Any]
    effect: Effect | None = None

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them, or what is wrong with them."""
        checked = self.arguments.model_validate(dict(arguments))
        return {name: getattr(checked, name) for name in self.arguments.model_fields}

    async def call(self, arguments: Mapping[str, Any], key: str = "") -> str:
        """Check the arguments, call the function, and return its output as text; a keyed tool gets the key."""
        values = self.check(arguments) | ({KEY: key} if self.effect == KEYED else {})
        output = await call(self.function, **values)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
        return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}\n[cut off after {MAX_OUTPUT:,} characters]"


def tool_of(function: Callable[..., Any], description: str = "", effect: Effect | None = None) -> Tool:
    """A tool from a function: the schema from its signature, the description from its docstring."""
    called = getattr(function, "__name__", "")
    if not called.isidentifier():
        raise Invalid(f"{called or repr(function)} has no name for a model to call; a tool is a function with a name")
    parameters = dict(_parameters(function, called))
    if effect == KEYED and parameters.pop(KEY, None) is None:
        raise Invalid(f"{called} has no parameter {KEY!r}; a tool with effect: keyed passes it on to its receiver")
    fields = {name: _field(called, parameter) for name, parameter in parameters.items()}
    try:
        arguments = create_model(called, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
        schema = {key: value for key, value in arguments.model_json_schema().items() if key != "title"}
    except Exception as error:  # such as a name that begins with _ : pydantic raises what it likes
        raise Invalid(f"a model cannot call {called}: {str(error).splitlines()[0]}; rename that parameter") from error
    text = description or inspect.getdoc(function) or called.replace("_", " ")
    return Tool(ToolSpec(called, text, schema), arguments, function, effect)


def _parameters(function: Callable[..., Any], called: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function, eval_str=True).parameters
    except Exception as error:  # a type is named that is not there, or the function is none of Python's
        raise Invalid(f"cannot read the parameters of {called}: {error}; import what its types name") from error


def _field(called: str, parameter: inspect.Parameter) -> Any:
    """The type of a parameter and its default, as pydantic takes them."""
    name, kind = parameter.name, parameter.annotation
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise Invalid(f"{called} has the parameter *{name}; a tool names all its parameters")
    if name.startswith("_"):
        raise Invalid(f"{called} has the parameter {name}; a tool's parameters begin with a letter")
    kind = Any if kind is parameter.empty else kind
    try:
        TypeAdapter(kind).json_schema()
    except Exception as error:  # pydantic has several errors for this, and a type may raise its own
        way_out = "use str, int, float, bool, list, dict, a dataclass or a pydantic model"
        shown = getattr(kind, "__name__", None) or str(kind)
        raise Invalid(
            f"a model cannot fill in the parameter {name!r} of {called}: its type is {shown}; {way_out}"
        ) from error
    return kind, ... if parameter.default is parameter.empty else parameter.default


def error_text(error: BaseException) -> str:
    """An error of a tool as text that a model can act on."""
    if isinstance(error, RaisedInside):
        return error.said
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    problems = (f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
    return "bad arguments: " + "; ".join(problems)
