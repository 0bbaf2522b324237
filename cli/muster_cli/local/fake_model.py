"""`muster fake-model`: a local server that answers as providers of models do, until Ctrl-C."""

import asyncio
import signal
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from muster_agent.fake_model.http import serving
from muster_agent.fake_model.recording import Recorded
from muster_agent.fake_model.script import read_script
from muster_agent.fake_model.server import FakeModel
from muster_bus.process.command import Exit
from muster_cli.view.console import say
from muster_protocol.errors import Invalid

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings

ANTHROPIC = "https://api.anthropic.com"
WELCOME = """\
The fake model is at {url}; it {replies}, and takes any key. For Claude:

  export ANTHROPIC_API_KEY=sk-fake-key ANTHROPIC_BASE_URL={url}

for what asks OpenAI's chat API:

  export OPENAI_API_KEY=sk-fake-key OPENAI_BASE_URL={url}/v1

Ctrl-C stops it. Each call is a line:
"""


async def fake_model(given: Namespace, _settings: "Settings") -> int:
    model = _model_of(given)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        async with serving(model.answer, model.released, port=given.port) as url:
            say(WELCOME.format(url=url, replies=_replies(given)))
            await stopped.wait()
    except OSError as error:
        raise Invalid(f"{given.port} cannot be used: {error.strerror}; name another one", "--port") from None
    return Exit.DONE


def _model_of(given: Namespace) -> FakeModel:
    if given.upstream and not given.record:
        raise Invalid("is for --record, which asks the real server", "--upstream")
    return FakeModel(
        script=None if given.script is None else read_script(Path(given.script), "--script"),
        replay=None if given.replay is None else Recorded(Path(given.replay)),
        record=None if given.record is None else Path(given.record),
        upstream=(given.upstream or ANTHROPIC).rstrip("/") if given.record else "",
        faults=tuple(given.fault or ()),
        every=given.every,
        retry_after=given.retry_after,
        say=say,
    )


def _replies(given: Namespace) -> str:
    if given.record:
        return f"asks the real server and writes {given.record}"
    if given.script or given.replay:
        return f"replies what {given.script or given.replay} says"
    return "echoes what it is asked"
