"""The providers of a team file, the names of models, the keys, and what a role does when a key is missing."""

from pathlib import Path
from typing import Any

import pytest

from muster_agent.errors import KeyRefused
from muster_agent.functions import Context
from muster_agent.models.choose import choose_model, has_key, provider_of
from muster_agent.team.checking.mistakes import TeamMistakes
from muster_agent.team.providers import ProviderSpec
from muster_agent.team.schema import ModelRole, Team
from muster_bus.redact import KNOWN
from muster_protocol.errors import Invalid, Misconfigured
from muster_testing.chat_server import completion, running_chat_server
from muster_worker.executor import Executor
from tests.unit.agent.teams import task, team

LOCAL = ProviderSpec.model_validate({"kind": "openai", "base_url": "http://localhost:11434/v1"})


@pytest.mark.parametrize(
    ("name", "env", "provider"),
    [
        ("anthropic/claude-sonnet-5-5", {}, "anthropic"),
        ("claude-sonnet-5-5", {"ANTHROPIC_BASE_URL": "http://x"}, "anthropic-base-url"),
        ("openai/gpt-5", {}, "openai"),
        ("local/qwen/3", {}, "local"),
        ("auto", {}, ""),
        ("offline", {}, ""),
    ],
)
def test_a_name_says_whose_model_it_is(name: str, env: dict[str, str], provider: str):
    assert provider_of(name, env, {"local": LOCAL}) == provider


def test_a_model_is_asked_of_its_provider_under_its_own_name():
    model = choose_model("local/qwen/3", {}, providers={"local": LOCAL})
    assert (model.name, model.provider) == ("qwen/3", "local")
    hosted = choose_model("openai/gpt-5", {"OPENAI_API_KEY": "sk-secret"})
    assert (hosted.name, hosted.provider) == ("gpt-5", "openai")


def test_the_key_of_a_known_provider_is_never_sent_to_an_address_of_one_s_own():
    own = ProviderSpec.model_validate({"kind": "anthropic", "base_url": "http://localhost:1"})
    env = {"ANTHROPIC_API_KEY": "sk-secret", "OPENAI_API_KEY": "sk-secret"}
    for model in (
        choose_model("own/x", env, providers={"own": own}),
        choose_model("own/x", env, providers={"own": LOCAL}),
    ):
        client: Any = vars(model)["_client"]
        assert client.api_key == "none"


def test_a_missing_key_is_named_and_one_in_a_file_is_read_and_redacted(tmp_path: Path):
    with pytest.raises(KeyRefused, match=r"openai/gpt-5 needs OPENAI_API_KEY"):
        choose_model("openai/gpt-5", {})
    (tmp_path / "key").write_text("sk-from-a-file-123\n")
    assert has_key("openai/gpt-5", {"OPENAI_API_KEY_FILE": str(tmp_path / "key")})
    found = team(
        {"name": "a", "model": "own/x"},
        providers={"own": {"kind": "openai", "base_url": "http://localhost:1", "api_key_file": "key"}},
        folder=tmp_path,
    )
    model = choose_model("own/x", {}, providers=found.providers)

    client: Any = vars(model)["_client"]
    assert client.api_key == "sk-from-a-file-123"
    assert KNOWN("it is sk-from-a-file-123") == "it is [redacted key]"
    with pytest.raises(Invalid, match="no provider 'away'"):
        choose_model("away/x", {})
    assert not has_key("openai/gpt-5", {})
    assert has_key("local/x", {}, {"local": LOCAL})


@pytest.mark.parametrize(
    ("role", "providers", "said"),
    [
        ({"model": "locl/x"}, {"local": {"kind": "openai"}}, "no provider 'locl'; did you mean 'local'?"),
        ({"model": ["auto", "gpt-9"]}, {}, "roles.0.model.1 (a): unknown model 'gpt-9'"),
        ({"model": []}, {}, "unknown model ''"),
        ({"other_model": "away/x"}, {}, "roles.0.other_model (a): no provider 'away'"),
        ({}, {"x": {"kind": "vertx"}}, "vertx"),
        ({}, {"x": {"kind": "vertex", "region": "eu"}}, "needs 'project'"),
        ({}, {"x": {"kind": "openai", "region": "eu"}}, "does not use 'region'"),
        ({}, {"x": {"kind": "openai", "api_key": "sk-1"}}, "unknown key 'api_key'"),
        ({}, {"x": {"kind": "openai", "api_key_env": "MY_VARIABLE"}}, "no name of a secret"),
        ({}, {"x": {"kind": "openai", "base_url": "http://u:p@host"}}, "a user or a password"),
        ({}, {"x": {"kind": "openai", "base_url": "localhost"}}, "no address"),
        ({}, {"x": {"kind": "mock"}}, "needs one of 'replies' and 'replies_file'"),
        ({}, {"x": {"kind": "foundry"}}, "needs one of 'resource' and 'base_url'"),
        ({}, {"auto": {"kind": "openai"}}, "give the provider another name"),
        ({}, {"A b": {"kind": "openai"}}, "cannot name a provider"),
        ({"effort": "huge"}, {}, "huge"),
        (
            {"model": "l/x", "tools": ["calculate"]},
            {"l": {"kind": "openai", "capabilities": {"tools": False}}},
            "provider 'l' has no tools",
        ),
    ],
)
def test_what_is_wrong_with_models_is_said_with_its_place(role: dict[str, Any], providers: dict[str, Any], said: str):
    with pytest.raises(TeamMistakes) as caught:
        team({"name": "a", **role}, providers=providers)

    assert said in str(caught.value)


def listed(url: str) -> Team:
    return team(
        {"name": "a", "model": ["anthropic/claude-sonnet-5-5", "local/x"]},
        providers={"local": {"kind": "openai", "base_url": url}},
    )


async def test_a_role_whose_first_model_has_no_key_uses_the_next_and_its_outcome_says_which():
    async with running_chat_server(completion("done")) as server:
        found = listed(server.base_url)
        outcome = await Executor(found, {}).run(task("a"), Context({}))

    role = found.roles[0]
    assert isinstance(role, ModelRole)
    assert (role.model, role.fallbacks) == ("anthropic/claude-sonnet-5-5", ("local/x",))
    assert (outcome.output, outcome.model) == ("done", "local/x")


async def test_a_task_that_is_given_a_fallback_is_done_by_it():
    async with running_chat_server(completion("done")) as server:
        found = listed(server.base_url)
        executor = Executor(found, {"ANTHROPIC_API_KEY": "sk-test"})
        outcome = await executor.run(task("a", model="local/x"), Context({}))

    assert outcome.model == "local/x"


def test_a_role_none_of_whose_models_has_a_key_says_which_is_missing():
    with pytest.raises(KeyRefused, match="ANTHROPIC_API_KEY"):
        Executor(team({"name": "a", "model": ["claude-sonnet-5-5", "openai/x"]}), {})


async def test_a_mock_replies_from_a_list_and_calls_tools():
    replies = [{"tool": "calculate", "arguments": {"expression": "6*7"}}, "42", {"when": "moon", "json": {"a": 1}}]
    found = team(
        {"name": "a", "model": "mock", "tools": ["calculate"]}, providers={"mock": {"kind": "mock", "replies": replies}}
    )
    executor = Executor(found, {})
    outcome = await executor.run(task("a", "add"), Context({}))
    moon = await executor.run(task("a", "to the moon"), Context({}))

    assert (outcome.output, outcome.usage.usd, outcome.model) == ("42", 0.0, "mock")
    assert outcome.tool_calls[0]["output"] == "42"
    assert moon.output == '{"a": 1}'
    assert executor.notice == ("the mock model replies from a list; it is not an LLM",)


def test_a_script_that_cannot_be_used_is_said(tmp_path: Path):
    (tmp_path / "r.yaml").write_text("- {txt: hello}\n")
    found = team({"name": "a"}, providers={"mock": {"kind": "mock", "replies_file": "r.yaml"}}, folder=tmp_path)
    with pytest.raises(Misconfigured, match=r"replies_file: .*r.yaml: 0"):
        choose_model("mock", {}, providers=found.providers)
