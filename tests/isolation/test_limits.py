"""Every way to misbehave is an error that says what happened, and the next call is served."""

from typing import Any

import pytest

from muster_agent.isolation.errors import RaisedInside
from muster_protocol.errors import MusterError
from tests.guards import guards
from tests.isolation.calls import Calls

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("use_at_once", {"megabytes": 1024}, "resource", "used more than 128 MB of memory; use less, or raise memory_mb"),
    ("use_together", {"megabytes": 400}, "resource", "MB of memory with "),
    ("leave_at_once", {"code": 3}, "logic", "ended by itself with exit code 3; return or raise instead"),
    ("write_everywhere", {}, "logic", "closed the connection to its worker, or wrote to it"),
    ("echo", {"word": "a"}, "logic", "bad arguments"),
]
MORE: list[tuple[str, dict[str, Any], str, str]] = [
    ("open_files", {}, "resource", "Too many open files"),
    ("leave_at_once", {"code": 0}, "logic", "ended by itself with exit code 0"),
    ("crash", {}, "logic", "was ended by SIGSEGV"),
    ("kill_itself", {}, "resource", "was killed, as the system does where memory is short"),
    ("end_group", {}, "logic", "was ended by SIGTERM"),
    ("close_all", {}, "logic", "the function"),
    ("late", {}, "logic", "come back"),
    ("never", {}, "logic", "there is no such thing"),
    ("bug", {}, "logic", "KeyError: 'key'"),
    ("nothing_of_that_name", {}, "input", "has no function 'nothing_of_that_name'"),
]
HANGING = ("spin", *(pytest.param(name, marks=pytest.mark.sweep) for name in ("block", "pause_itself")))


@pytest.mark.parametrize(
    ("function", "arguments", "error_class", "text"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.sweep) for case in MORE)],
)
async def test_a_function_that_misbehaves_is_named_and_the_next_is_served(
    calls: Calls, function: str, arguments: dict[str, Any], error_class: str, text: str
):
    with pytest.raises(MusterError) as caught:
        await calls.use(function, **arguments)

    said = caught.value.said if isinstance(caught.value, RaisedInside) else str(caught.value)
    assert (caught.value.error_class, text in said) == (error_class, True), said
    assert await calls.use("echo", text="well") == "well"


@guards(
    "libs/agent/muster_agent/isolation/pool.py",
    "async with asyncio.timeout(limit):",
    replace="async with asyncio.timeout(None):",
    rule="I10",
    case="spin",
    seconds=30,
)
@pytest.mark.parametrize("function", HANGING)
async def test_a_function_that_hangs_is_ended_in_time_and_the_next_is_served(calls: Calls, function: str):
    with pytest.raises(MusterError, match="the function") as caught:
        await calls.use(function, seconds=0.5)

    assert caught.value.error_class == "timeout"
    assert await calls.use("echo", text="well") == "well"


async def test_an_output_that_is_no_json_is_text_for_a_model(calls: Calls):
    assert "object object at" in str(await calls.use("no_json"))


async def test_a_long_output_of_a_tool_is_cut_off_as_any_tools_is(calls: Calls):
    assert str(await calls.use("large", characters=2_000_000)).endswith("[cut off after 50,000 characters]")


async def test_what_a_program_prints_is_logged_up_to_a_limit(calls: Calls, caplog: pytest.LogCaptureFixture):
    assert await calls.use("say", text="on its way", error="or not") == "said"
    assert {(record.name, record.message) for record in caplog.records} == {
        ("stdout", "on its way"),
        ("stderr", "or not"),
    }
    caplog.clear()

    assert await calls.use("flood", megabytes=5) == "all of it"

    assert sum(len(record.message) for record in caplog.records) < 70_000
    assert "the rest of this call's is left out" in caplog.records[-1].message
    caplog.clear()
    await calls.use("say", text="after the flood", error="")
    assert [record.message for record in caplog.records][-1:] == ["after the flood"]
