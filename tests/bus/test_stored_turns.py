"""The turns of a task in a real stream: who writes last wins, and a lost acknowledgement is found out by reading."""

import asyncio
import secrets

import pytest

from muster_bus import turns as module
from muster_bus.connection import Bus
from muster_bus.turns import TurnsOfTask, purge_turns
from muster_protocol.messages import Claim, ModelTurn
from muster_protocol.messages.turns import StoredReply
from tests.guards import guards

TURNS = "libs/bus/muster_bus/turns.py"


def claim(worker: str) -> Claim:
    return Claim(task_id="t", attempt=1, worker=worker)


async def test_of_two_who_claim_at_once_one_does_and_the_other_reads_who(bus: Bus, other: Bus):
    mine, theirs = TurnsOfTask(bus, "r1", "t"), TurnsOfTask(other, "r1", "t")
    found = await asyncio.gather(mine.append(claim("w1"), 0), theirs.append(claim("w2"), 0))

    assert sorted(sequence is None for sequence in found) == [False, True]
    known = await mine.read()
    assert known.claim is not None
    assert known.claim.worker == ("w1" if found[0] is not None else "w2")


async def test_a_turn_is_refused_after_a_later_claim_and_a_large_one_is_read_as_it_was(bus: Bus, other: Bus):
    mine, theirs = TurnsOfTask(bus, "r1", "t"), TurnsOfTask(other, "r1", "t")
    first = await mine.append(claim("w1"), 0)
    assert first is not None
    reply = StoredReply(text="x" * 600_000, native=[{"type": "text", "text": "y"}])
    turn = await mine.append(ModelTurn(task_id="t", claim=first, reply=reply), first)
    assert turn is not None
    assert await theirs.append(claim("w2"), turn) is not None

    assert await mine.append(ModelTurn(task_id="t", claim=first, reply=reply), turn) is None
    (step,) = (await theirs.read()).steps
    assert step.reply == reply


@guards(
    TURNS, "        return await self._own_after(after, body.id_for(origin))", rule="I9", replace="        return None"
)
async def test_a_write_whose_acknowledgement_was_lost_is_found_to_be_ours(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """The broker stored it; it says so only the second time: that this is a duplicate."""
    nonce = "a" * 16

    def known(_: int) -> str:
        return nonce

    monkeypatch.setattr(secrets, "token_hex", known)
    origin = bus.origin("r1", nonce=nonce)
    stored = await bus.store(claim("w1"), origin, expected=0)
    mine = TurnsOfTask(bus, "r1", "t")

    sequence = await mine.append(claim("w1"), 0)

    assert sequence == stored.sequence


async def test_the_turns_of_one_request_are_removed_and_no_others(bus: Bus):
    for request in ("r1", "r2"):
        for task in ("a", "b"):
            await TurnsOfTask(bus, request, task).append(Claim(task_id=task, attempt=1, worker="w1"), 0)
    await purge_turns(bus, "r1")

    left = [(await TurnsOfTask(bus, request, task).read()).claim for request in ("r1", "r2") for task in ("a", "b")]
    assert [one is not None for one in left] == [False, False, True, True]
    assert await TurnsOfTask(bus, "r1", "a").append(claim("w1"), 0) is not None


async def test_who_had_the_last_turn_is_refused_when_the_turns_were_removed(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOOKS", 1)
    mine = TurnsOfTask(bus, "r1", "t")
    first = await mine.append(claim("w1"), 0)
    assert first is not None
    await purge_turns(bus, "r1")

    assert await mine.append(ModelTurn(task_id="t", claim=first), first) is None
