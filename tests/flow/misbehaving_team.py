"""A team whose roles misbehave as their orders say, and how it is started."""

import json
from typing import Any

from tests.harness import Muster

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, run: "tests.misbehaving_role:misbehave"}
  - {name: second, run: "tests.misbehaving_role:block"}
limits: {in_flight: 32, deadline_seconds: 60}
"""


def orders(**order: Any) -> str:
    return json.dumps(order)


async def start_misbehaving(muster: Muster, *options: str, grace_seconds: float = 10.0) -> None:
    (muster.folder / "team.yaml").write_text(TEAM)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", *options, grace_seconds=grace_seconds)
