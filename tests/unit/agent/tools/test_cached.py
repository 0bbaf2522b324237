"""What a cached tool returned is reused for the same call, and for no other."""

import json
import random
from collections.abc import Mapping
from typing import Annotated, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from muster_agent.budget import Meter
from muster_agent.loop import work
from muster_agent.models.port import Reply, ToolCall, ToolSpec, WorkBrief
from muster_agent.models.scripted import Scripted
from muster_agent.team.schema import ModelRole
from muster_agent.tools.cached import CachedTool, Reused, cached, key_of, within
from muster_agent.tools.load import tools_for
from muster_agent.tools.tool import Tool, tool_of
from muster_bus.redact import KNOWN
from tests.guards import guards
from tests.unit.agent.teams import team

SPEC = ToolSpec("look", "Look it up.", {"type": "object"})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def ignore(*_: object) -> None:
    """Publish nothing."""


class Kept:
    """The outputs of one request, in memory."""

    def __init__(self) -> None:
        self.outputs: dict[str, str] = {}

    async def get(self, key: str) -> str | None:
        return self.outputs.get(key)

    async def put(self, key: str, output: str) -> None:
        self.outputs[key] = output


class Looked:
    """A tool that says how often it was called."""

    def __init__(self) -> None:
        self.times = 0

    def tool(self, named: str = "mine:look") -> Tool:
        def look(what: str, limit: Annotated[int, Field(ge=1)] = 3) -> str:
            """Look it up."""
            self.times += 1
            if what == "nothing":
                raise LookupError("there is nothing")
            return f"{what} {limit} #{self.times}"

        return cached(tool_of(look), named)


@given(ARGUMENTS, st.randoms())
def test_the_order_of_the_arguments_does_not_matter(arguments: dict[str, Any], chance: random.Random):
    names = list(arguments)
    chance.shuffle(names)
    assert key_of("a", SPEC, arguments) == key_of("a", SPEC, {name: arguments[name] for name in names})


@given(ARGUMENTS, ARGUMENTS)
def test_other_arguments_have_another_key(one: dict[str, Any], other: dict[str, Any]):
    is_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (key_of("a", SPEC, one) == key_of("a", SPEC, other)) == is_same


def test_another_tool_and_another_version_of_it_have_another_key():
    keys = {
        key_of("mine:look", SPEC, {}),
        key_of("yours:look", SPEC, {}),
        key_of("mine:look", ToolSpec("look", "Look it up anew.", SPEC.schema), {}),
        key_of("mine:look", ToolSpec("look", SPEC.description, {"type": "object", "required": ["a"]}), {}),
    }
    assert len(keys) == 4


async def test_an_output_is_reused_whatever_way_its_arguments_are_written():
    looked, kept = Looked(), Kept()
    ours, theirs = (within({"look": looked.tool()}, kept)["look"] for _ in range(2))

    first = await ours.call({"what": "apples"})
    again = await theirs.call({"limit": 3, "what": "apples"})

    assert (first, again, looked.times) == ("apples 3 #1", "apples 3 #1", 1)
    assert (isinstance(first, Reused), isinstance(again, Reused)) == (False, True)
    assert await ours.call({"what": "apples", "limit": 4}) == "apples 4 #2"


async def test_other_requests_and_other_tools_share_nothing():
    looked, kept = Looked(), Kept()
    await within({"look": looked.tool()}, kept)["look"].call({"what": "apples"})

    await within({"look": looked.tool()}, Kept())["look"].call({"what": "apples"})
    await within({"look": looked.tool("yours:look")}, kept)["look"].call({"what": "apples"})
    await looked.tool().call({"what": "apples"})

    assert looked.times == 4


async def test_an_error_is_not_kept():
    looked, kept = Looked(), Kept()
    tool = within({"look": looked.tool()}, kept)["look"]

    for _ in range(2):
        with pytest.raises(LookupError):
            await tool.call({"what": "nothing"})
    with pytest.raises(ValidationError):
        await tool.call({"what": "apples", "limit": 0})

    assert (looked.times, kept.outputs) == (2, {})


@guards("libs/agent/muster_agent/tools/cached.py", "if KNOWN(output) == output:", rule="I10", replace="if True:")
async def test_what_holds_a_secret_is_not_kept():
    KNOWN.add([("SHOP_KEY", "swordfish-0123456789")])
    looked, kept = Looked(), Kept()
    tool = within({"look": looked.tool()}, kept)["look"]

    assert await tool.call({"what": "swordfish-0123456789"}) == "swordfish-0123456789 3 #1"
    assert kept.outputs == {}


async def test_the_result_says_which_calls_were_not_made():
    looked, kept = Looked(), Kept()
    calls = Reply(tool_calls=(ToolCall("c1", "look", {"what": "pears"}),), stop="tools")
    meter = Meter()
    tools: Mapping[str, Tool] = within({"look": looked.tool()}, kept)

    await work(Scripted([calls, calls, Reply("done")]), WorkBrief("do it"), tools, meter, ignore)

    assert [call.get("reused") for call in meter.tool_calls] == [None, True]
    assert [call["output"] for call in meter.tool_calls] == ["pears 3 #1"] * 2


def test_two_roles_share_outputs_only_where_their_functions_see_the_same_variables():
    use = {"use": "tests.buying_role:send", "cache": True}
    mine, other = ({"name": name, "tools": [{**use, "env": [f"{name.upper()}_TOKEN"]}]} for name in ("mine", "other"))
    both = team(mine, other, {"name": "third", "tools": [{**use, "env": ["MINE_TOKEN"]}]})

    named = [cast("CachedTool", tools_for(cast("ModelRole", role), both)["send"]).named for role in both.roles]

    assert named[0] == named[2] != named[1]
