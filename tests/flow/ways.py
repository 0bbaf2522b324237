"""The ways in which a request comes in: each makes another beginning of its tree."""

import asyncio
import json
import re
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from muster_testing.otlp import Collector
from tests.flow.command_line import Here
from tests.harness import Muster

CALLER = "cd" * 8
TRACEPARENT = f"00-{'ab' * 16}-{CALLER}-01"


class Asked(NamedTuple):
    """A request, and what stands above its workflow span."""

    request_id: str
    above: tuple[str, ...] = ()
    caller: str = ""  # the span of whoever asked, which is not ours


async def ask(way: str, muster: Muster, collector: Collector, tasks: list[dict[str, Any]]) -> Asked:
    """Ask by a client that does not trace, by the command line, or by HTTP under a caller's span."""
    if way == "client":
        return Asked(await muster.submit(tasks))
    plan = {
        "tasks": [{"id": task["id"], "tag": "scripted", "description": json.dumps(task["orders"])} for task in tasks]
    }
    if way == "command":
        (muster.folder / "here").mkdir()
        here = Here(muster.folder / "here", MUSTER_NATS_URL=muster.broker.url, **collector.environment)
        words = ("submit", "--plan", "-", "--team", "default", "--detach")
        ran = await asyncio.to_thread(here.run, *words, text=json.dumps(plan))
        assert ran.returncode == 0, ran.stderr
        return Asked(ran.stdout.split()[0], ("publish requests.{team}",))
    await muster.start("coordinator", "c1", env=collector.environment)
    (address,) = re.findall(r"ready: (http://\S+)", muster.service_log("c1"))
    request_id = await asyncio.to_thread(post, address, {"plan": plan}, {"traceparent": TRACEPARENT})
    return Asked(request_id, ("POST /v1/requests", "publish requests.{team}"), CALLER)


def post(address: str, body: object, headers: Mapping[str, str] | None = None) -> str:
    """Ask by HTTP; returns the id of the request."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(f"{address}/v1/requests", data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(json.load(reply)["id"])
