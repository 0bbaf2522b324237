"""A tool whose function runs in a process of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster_agent.isolation.messages import ToolRun
from muster_agent.isolation.pool import Pool, output_of
from muster_agent.isolation.process import Kind, Told
from muster_agent.tools.tool import KEYED, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedTool(Tool):
    """Called like any other; its arguments are checked where its function is."""

    pool: Pool
    kind: Kind
    path: str
    folder: Path
    seconds: float

    async def call(self, arguments: Mapping[str, Any], key: str = "") -> str:
        run = ToolRun(
            function=self.path,
            folder=self.folder,
            seconds=self.seconds,
            arguments=json.dumps(dict(arguments)),
            key=key if self.effect == KEYED else None,
        )
        return output_of(await self.pool.call(self.kind, run, UNHEARD, self.seconds))


def _ignore(*_: object) -> None:
    """A tool says nothing before its output."""


UNHEARD = Told(_ignore, _ignore)
