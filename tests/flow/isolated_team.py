"""A team with a role that runs in processes of its own, beside a neighbour that does not."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness import Muster, running
from tests.isolation.calls import end_all

ROLES = """\
  - name: apart
    run: "tests.isolated_role:obey"
    isolated: true
    spawns: true
    memory_mb: 128
    slots: 4
    env: [MUSTER_TEST_FOLDER, SHOP_TOKEN]
    retry: {max_attempts: 2, backoff_seconds: 0.05}
  - {name: later, run: "tests.isolated_role:obey_later", isolated: true, spawns: true, env: [MUSTER_TEST_FOLDER]}
  - {name: alone, run: "tests.isolated_role:obey", isolated: true, env: [MUSTER_TEST_FOLDER]}
"""
SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-never-passed-on",
    "MUSTER_CALLBACK_SECRET": "a-secret-that-signs-callbacks",
    "SHOP_TOKEN": "token-of-the-shop",
    "SHOP_PASSWORD": "password-of-the-shop",
}


@asynccontextmanager
async def apart(folder: Path, env: Mapping[str, str] = SECRETS) -> AsyncGenerator[Muster]:
    """A supervisor and a worker that has secrets."""
    async with running(folder, roles=ROLES) as muster:
        await muster.start("supervisor", "s1")
        await muster.start("worker", "w1", grace_seconds=5, env=env)
        try:
            yield muster
        finally:
            end_all(folder)


def does(what: str, task_id: str = "a", tag: str = "apart", **orders: Any) -> dict[str, Any]:
    """A task for the role."""
    said = json.dumps({"do": what, **orders})
    return {"id": task_id, "tag": tag, "description": said}
