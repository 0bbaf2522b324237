"""What of isolation only thinks: frames, the environment, the words for an end, and what a team file may say."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.isolation.endings import READ, Ending, error_of
from muster_agent.isolation.environment import USUAL, environment_for
from muster_agent.isolation.frames import MARK, MAX_BYTES, Garbage, framed, read_frame
from muster_agent.isolation.messages import Progressed, Returned, frame, told_to_worker
from muster_agent.isolation.report import MAX_OUTPUT, raised_by, returned
from muster_agent.team.schema import FunctionRole, ModelRole
from muster_protocol.errors import Invalid, Terminal
from tests.unit.agent.teams import team

NAMES = st.from_regex(r"[A-Z_]{1,12}", fullmatch=True)


async def frames_in(stream: bytes) -> list[bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(stream)
    reader.feed_eof()
    found: list[bytes] = []
    while True:
        try:
            found.append(await read_frame(reader))
        except asyncio.IncompleteReadError:
            return found


@given(st.lists(st.binary(max_size=200)), st.integers(min_value=1, max_value=400))
def test_frames_come_as_they_were_sent_and_one_that_is_cut_does_not_come(bodies: list[bytes], cut: int):
    stream = b"".join(map(framed, bodies))
    assert asyncio.run(frames_in(stream)) == bodies
    assert asyncio.run(frames_in(stream[:-cut])) == bodies[: len(asyncio.run(frames_in(stream[:-cut])))]


@given(st.binary(min_size=len(MARK)).filter(lambda found: not found.startswith(MARK)))
def test_what_is_no_frame_is_recognized_by_its_first_bytes(garbage: bytes):
    with pytest.raises(Garbage):
        asyncio.run(frames_in(garbage))


def test_a_frame_that_nobody_could_hold_is_garbage():
    with pytest.raises(Garbage):
        asyncio.run(frames_in(MARK + (MAX_BYTES + 1).to_bytes(4, "big")))


@given(st.binary())
def test_a_message_that_nobody_says_is_garbage(body: bytes):
    with pytest.raises(Garbage):
        told_to_worker(body)


@given(st.text())
def test_messages_come_as_they_were_said(text: str):
    said = Progressed(text=text)
    (body,) = asyncio.run(frames_in(frame(said)))
    assert told_to_worker(body) == said


@given(st.dictionaries(NAMES, st.text()), st.sets(NAMES))
def test_an_environment_holds_what_is_usual_or_named_and_nothing_else(env: dict[str, str], named: set[str]):
    found = environment_for(named, env)
    assert found.items() <= env.items()
    assert {name for name in found if not name.startswith("LC_")} == env.keys() & (USUAL | named)


@pytest.mark.parametrize(
    ("ending", "error_class", "text"),
    [
        (Ending(used_mb=900, others=2), "resource", "900 MB of memory with 2 processes that it had started"),
        (Ending(status=signal.SIGXCPU), "resource", "used 7 s of processor time and was ended; compute less"),
        (Ending(status=signal.SIGKILL, others=1), "resource", "was killed with a process that it had started, as"),
        (Ending(status=signal.SIGABRT), "logic", "was ended by SIGABRT; look at the native code"),
        (Ending(status=3 << 8), "logic", "with exit code 3; return or raise instead"),
        (Ending(), "logic", "closed the connection to its worker"),
    ],
)
def test_how_a_process_ended_is_said_with_the_way_out(ending: Ending, error_class: str, text: str):
    error = error_of(ending, memory_mb=512, seconds=7)
    assert (error.error_class, text in str(error)) == (error_class, True), str(error)


def test_what_a_keeper_says_is_read():
    assert READ.validate_python({"status": 9, "others": 1}) == Ending(status=9, others=1)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v, max_size=3), max_leaves=9)
)
def test_an_output_that_is_json_comes_as_it_was(output: object):
    found = returned(output)
    assert isinstance(found, Returned)
    assert json.loads(found.output) == output


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({1, 2}, "type set is not JSON"),
        (float("nan"), "not JSON"),
        ("\ud800", "not JSON"),
        ("x" * MAX_OUTPUT, "return less"),
    ],
)
def test_an_output_that_no_message_can_carry_is_bad(output: object, text: str):
    found = returned(output)
    assert not isinstance(found, Returned)
    assert (found.error_class, text in found.text) == ("bad_output", True)


def test_an_error_keeps_its_class_and_whether_it_is_final():
    assert raised_by(Terminal("no"), 64).is_final
    assert raised_by(Invalid("no", "inputs"), 64).error_class == "input"
    assert raised_by(ConnectionError("away"), 64).error_class == "network"
    assert raised_by(MemoryError(), 64).is_out_of_memory
    assert raised_by(OSError(28, "No space left on device"), 64).error_class == "resource"
    assert raised_by(FileNotFoundError("no such file: \udcff"), 64).text.endswith("\\udcff")


def test_a_tool_of_the_teams_own_is_isolated_unless_it_says_otherwise(tmp_path: Path):
    tools = ["calculate", "shop:stock", {"use": "shop:price", "isolated": False}, {"use": "shop:buy", "memory_mb": 99}]
    (role,) = team({"name": "a", "tools": tools}, folder=tmp_path).roles
    assert isinstance(role, ModelRole)
    assert [tool.is_isolated for tool in role.tools] == [False, True, False, True]
    assert role.tools[3].memory_mb == 99


def test_an_isolated_role_without_a_time_limit_gets_one(tmp_path: Path):
    said: tuple[dict[str, object], ...] = ({"isolated": True}, {"isolated": True, "timeout_seconds": 900}, {})
    roles = team(*({"name": f"r{n}", "run": "a:b", **more} for n, more in enumerate(said)), folder=tmp_path).roles
    assert [role.timeout_seconds for role in roles] == [180, 900, None]
    assert [role.isolated for role in roles if isinstance(role, FunctionRole)] == [True, True, False]
