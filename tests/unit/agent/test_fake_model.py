"""The fake model as the packages of Anthropic and OpenAI meet it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster_agent.budget import Meter
from muster_agent.errors import BadOutput, ModelAway, RateLimited, Refused
from muster_agent.fake_model.http import serving
from muster_agent.fake_model.recording import Recorded, key_of
from muster_agent.fake_model.script import Fault, read_script, script_of
from muster_agent.fake_model.server import FakeModel
from muster_agent.loop import work
from muster_agent.models.choose import choose_model
from muster_agent.models.port import Ask, Model, PlanBrief, RefineBrief, Style, WorkBrief, require_complete
from muster_agent.models.prompts.draft import PlanDraft
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Misconfigured, Terminal
from muster_protocol.workers.role_card import RoleCard

ROLES = (RoleCard(name="researcher", tags=("research", "facts"), description="Finds facts"),)
BOTH = pytest.mark.parametrize("name", ["claude-sonnet-5-5", "openai/gpt-5"])


@asynccontextmanager
async def asking(fake: FakeModel, name: str) -> AsyncGenerator[Model]:
    async with serving(fake.answer, fake.released) as url:
        env = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
        yield choose_model(name, {**env, "ANTHROPIC_API_KEY": "any", "OPENAI_API_KEY": "any"})


def ignore(*_: object) -> None:
    """Publish nothing."""


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@BOTH
async def test_an_echo_plans_one_task_and_does_it(name: str):
    async with asking(FakeModel(), name) as model:
        plan = PlanDraft.model_validate_json((await model.ask(Ask(PlanBrief("find x", ROLES)))).text)
        done = await model.ask(Ask(WorkBrief("find y")))
        refined = await model.ask(Ask(RefineBrief("find x", "there are two")))

    assert [(task.tag, task.description) for task in plan.tasks] == [("research", "find x")]
    assert done.text == "find y"
    assert json.loads(refined.text)["can_be_mended"] is False


@BOTH
async def test_a_script_replies_in_its_order_or_where_a_prompt_has_a_text(name: str):
    script = script_of(
        [{"tool": "double", "arguments": {"number": 4}}, "eight", {"when": "moon", "text": "far"}], "replies"
    )
    async with asking(FakeModel(script=script), name) as model:
        answer = await work(model, WorkBrief("double 4"), {"double": tool_of(double)}, Meter(), ignore)
        moon = await work(model, WorkBrief("to the moon?"), {}, Meter(), ignore)

    assert (answer, moon) == ("eight", "far")


@BOTH
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", RateLimited),
        ("529", ModelAway),
        ("500", ModelAway),
        ("cut", ModelAway),
        ("broken", ModelAway),
        ("truncate", BadOutput),
        ("refuse", Refused),
    ],
)
async def test_a_fault_is_what_the_real_one_would_be(fault: Fault, error: type[Exception], name: str):
    async with asking(FakeModel(faults=(fault,), every=2, retry_after=7), name) as model:
        assert require_complete(await model.ask(Ask(WorkBrief("one")))).text == "one"
        with pytest.raises(error) as caught:
            require_complete(await model.ask(Ask(WorkBrief("two"))))

    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after_seconds == 7


async def test_a_call_hangs_until_the_server_ends():
    fake = FakeModel(faults=("hang",))
    async with asking(fake, "claude-sonnet-5-5") as model:
        waiting = asyncio.create_task(model.ask(Ask(WorkBrief("x"))))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
        fake.released.set()
        assert (await waiting).text == "x"


@BOTH
async def test_what_is_recorded_of_a_real_server_is_replayed_without_it(name: str, tmp_path: Path):
    file = tmp_path / "calls.jsonl"
    real = FakeModel(script=script_of(["the first", "the second"], "replies"))
    async with serving(real.answer, real.released) as upstream:
        recording = FakeModel(record=file, upstream=upstream)
        async with asking(recording, name) as model:
            said = [await reply(model, text, Style(wrote=ignore)) for text in ("what is x?", "what is y?")]
    async with asking(FakeModel(replay=Recorded(file)), name) as model:
        again = [await reply(model, text) for text in ("what is y?", "what is x?")]
        with pytest.raises(Terminal, match="was not recorded"):
            await reply(model, "what is z?")

    assert said == ["the first", "the second"]
    assert again == ["the second", "the first"]
    assert "any" not in file.read_text(), "no key is recorded"


async def reply(model: Model, text: str, style: Style | None = None) -> str:
    ask = Ask(WorkBrief(text)) if style is None else Ask(WorkBrief(text), style=style)
    return (await model.ask(ask)).text


async def test_an_upstream_that_is_away_is_a_busy_provider(tmp_path: Path):
    fake = FakeModel(record=tmp_path / "f", upstream="http://127.0.0.1:1")
    async with asking(fake, "claude-sonnet-5-5") as model:
        with pytest.raises(ModelAway, match="no answer from"):
            await model.ask(Ask(WorkBrief("x")))


async def test_a_request_that_the_real_one_refuses_is_refused():
    said: list[str] = []
    fake = FakeModel(say=said.append)
    body: dict[str, Any] = {"max_tokens": 5, "temperature": 1, "messages": [{"role": "user", "content": "hi"}]}

    wrong = await fake.answer("/v1/messages", {"anthropic-version": "2026-10-21"}, body)
    nowhere = await fake.answer("/v2/else", {}, {})

    assert (wrong.status, nowhere.status) == (400, 400)
    assert "sampling parameters" in said[0]


def test_two_runs_of_one_call_have_one_key():
    def body(mark: str, seconds: int, asked: str) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": f"<data-{mark}> {asked} Left: {seconds} s"}]}

    first = key_of("/v1/messages", body("0123456789ab", 12, "x"))
    assert first == key_of("/v1/messages", body("ba9876543210", 9, "x"))
    assert first != key_of("/v1/messages", body("0123456789ab", 12, "y"))


@pytest.mark.parametrize(
    ("text", "said"),
    [("{}", "needs a list"), ("- {when: x}", "0: has none of"), ("- {txt: x}", "0.txt"), ("- {fault: '418'}", "fault")],
)
def test_a_script_says_what_is_wrong_with_it(text: str, said: str, tmp_path: Path):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(Misconfigured, match=said):
        read_script(tmp_path / "s.yaml", "--script")


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path):
    files: Sequence[Path] = (tmp_path / "away", tmp_path / "bad")
    (tmp_path / "bad").write_text("{}\n")
    for file in files:
        with pytest.raises(Misconfigured, match="--record writes such a file"):
            Recorded(file)
