"""A tool whose outputs are kept and reused within a request, by all its workers.

What is kept is found again by the name that the team gives the tool, by what a model knows of it, and by the arguments
as the tool takes them. Two equal calls at the same time may both be made. Only what a tool returned is kept: never an
error, and nothing that holds a secret of this process, which must not be stored where others read.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster_agent.models.port import ToolSpec
from muster_agent.tools.tool import Tool
from muster_bus.redact import KNOWN


class KeptOutputs(Protocol):
    """Where the outputs of a request are kept. It may forget any of them, and never makes up one."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, output: str) -> None: ...


class Reused(str):
    """An output that was kept: the tool was not called for it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTool(Tool):
    """A tool that is called only for what is not kept yet."""

    tool: Tool
    named: str  # in the team file: `web_search`, or `module:function`
    kept: KeptOutputs | None = field(default=None)  # None: outside of a request

    async def call(self, arguments: Mapping[str, Any], key: str = "") -> str:
        if self.kept is None:
            return await self.tool.call(arguments, key)
        checked = self.arguments.model_validate(dict(arguments)).model_dump(mode="json")
        kept_as = key_of(self.named, self.spec, checked)
        output = await self.kept.get(kept_as)
        if output is not None:
            return Reused(output)
        output = await self.tool.call(arguments, key)
        if KNOWN(output) == output:
            await self.kept.put(kept_as, output)
        return output


def cached(tool: Tool, named: str) -> CachedTool:
    """The tool, to be kept under this name once a request says where."""
    return CachedTool(tool.spec, tool.arguments, tool.function, tool=tool, named=named)


def within(tools: Mapping[str, Tool], kept: KeptOutputs) -> dict[str, Tool]:
    """The tools for one request: those that are cached share what is kept for it."""
    return {
        name: CachedTool(tool.spec, tool.arguments, tool.function, tool=tool.tool, named=tool.named, kept=kept)
        if isinstance(tool, CachedTool)
        else tool
        for name, tool in tools.items()
    }


def key_of(named: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """The same for the same call, whatever the order in which a model wrote its arguments."""
    told = [named, spec.name, spec.description, spec.schema, arguments]
    text = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
