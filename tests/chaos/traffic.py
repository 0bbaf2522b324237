"""A client that never stops asking: plans of every shape, copies, cancels, large bodies, and a list of its own."""

import asyncio
import json
import random
import time
from typing import Any

from muster_client import Client
from muster_protocol.errors import MusterError
from muster_protocol.subjects import request_id
from tests.chaos.garbage import throw
from tests.chaos.ledger import Ledger, Rivals, Sent

INTERVAL_SECONDS = (0.05, 0.6)
DEADLINE_SECONDS = 30.0  # of the team, where a request says nothing
SHORT_DEADLINE_SECONDS = (0.5, 6.0)
LONG_SECONDS = 12.0  # a task that outlasts several supervisors which are killed in a loop
OUTLASTING_SECONDS = (2.0, 6.0)  # tasks that outlast a worker's pause past its ack wait, so that two run them
TWICE_SECONDS = 1.0  # between two messages with one id, at most
LARGE = 600_000  # bytes: travels by reference
WORD_SECONDS = 20.0  # a publish without a word after this long is given up as unknown
TAGS = ("scripted", "other", "second")


class Traffic:
    """Sends at random intervals. Every chance is drawn here, in order, from one seeded source."""

    def __init__(self, client: Client, ledger: Ledger, chance: random.Random, name: str) -> None:
        self._client = client
        self._ledger = ledger
        self._chance = chance
        self._name = name

    async def run(self, until: float) -> None:
        async with asyncio.TaskGroup() as sending:
            count = 0
            while time.monotonic() < until:
                count += 1
                self._next(f"{self._name}-{count}", sending)
                await asyncio.sleep(self._chance.uniform(*INTERVAL_SECONDS))

    def _next(self, name: str, sending: asyncio.TaskGroup) -> None:
        chance = self._chance
        if chance.random() < 0.15:
            ids = list(self._ledger.sent)
            meant = chance.choice(ids[-10:]) if ids and chance.random() < 0.7 else f"{name}-nobody"
            sending.create_task(throw(self._client.bus, self._ledger, chance.randrange(1 << 30), name, meant))
            return
        plan = a_plan(chance)
        deadline = chance.uniform(*SHORT_DEADLINE_SECONDS) if chance.random() < 0.15 else None
        body: dict[str, Any] = {"plan": plan, "deadline_seconds": deadline}
        self._ledger.large += len(json.dumps(plan)) > LARGE
        what = chance.random()
        if what < 0.1:
            sending.create_task(self._send_bare(name, body))
            return
        if what < 0.16:
            other = None if chance.random() < 0.5 else {**body, "plan": a_plan(chance)}
            sending.create_task(self._send_twice(name, body, other, chance.uniform(0.0, TWICE_SECONDS)))
            return
        sent = self._ledger.sent[name] = Sent(name, deadline or DEADLINE_SECONDS, time.time())
        if what < 0.2:  # a client that dies in the middle
            sending.create_task(self._send(sent, body, chance.uniform(0.0, 0.02)))
            return
        sending.create_task(self._send(sent, body, WORD_SECONDS))
        if what < 0.35:
            for _ in range(chance.randint(1, 3)):
                sending.create_task(self._send_later(sent, body, chance.choice([0.0, 0.05, chance.uniform(0, 8)])))
        elif what < 0.45:
            sending.create_task(self._cancel_later(sent, chance.uniform(0.0, 2.0)))

    async def _send(self, sent: Sent, body: dict[str, Any], within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._client.submit(id=sent.id, **body)
            sent.acked(time.time())
        except (TimeoutError, MusterError):
            return  # stays unknown

    async def _send_later(self, sent: Sent, body: dict[str, Any], delay: float) -> None:
        await asyncio.sleep(delay)
        self._ledger.copies += 1
        await self._send(sent, body, WORD_SECONDS)

    async def _send_bare(self, name: str, body: dict[str, Any]) -> None:
        """As from any other language: no headers, no id; the id follows from the broker's word."""
        body["plan"]["goal"] = name
        data = _text(body)
        if len(data) > LARGE:
            return
        began = time.time()
        self._ledger.bare.add(name)
        try:
            stored = await self._client.bus.publisher.store("requests.default", data, {}, give_up_after=WORD_SECONDS)
        except MusterError:
            return
        sent = Sent(request_id(None, None, stored.sequence, data), body["deadline_seconds"] or DEADLINE_SECONDS, began)
        sent.acked(time.time())
        self._ledger.sent[sent.id] = sent

    async def _send_twice(self, name: str, body: dict[str, Any], other: dict[str, Any] | None, delay: float) -> None:
        """Two messages with one id in their bodies: the same bytes, or another request under the same id."""
        texts = [_text({"id": name, **one}) for one in (body, other or body)]
        if max(map(len, texts)) > LARGE:
            return
        sent = self._ledger.sent[name] = Sent(name, body["deadline_seconds"] or DEADLINE_SECONDS, time.time())
        self._ledger.twice += 1
        places: list[int] = []
        for text in texts:
            try:
                stored = await self._client.bus.publisher.store(
                    "requests.default", text, {}, give_up_after=WORD_SECONDS
                )
            except MusterError:
                continue
            places.append(stored.sequence)
            sent.acked(time.time())
            if other is not None:
                sent.acked_at = time.time()  # either body may count: the deadline runs from the one that does
            await asyncio.sleep(delay)
        if other is not None and len(places) == 2:
            self._ledger.rivals.append(Rivals(name, (places[0], places[1])))

    async def _cancel_later(self, sent: Sent, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            async with asyncio.timeout(WORD_SECONDS):
                await self._client.cancel(sent.id, "changed my mind")
        except (TimeoutError, MusterError):
            return
        sent.cancelled_at = time.time()


def _text(body: dict[str, Any]) -> bytes:
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


def a_plan(chance: random.Random) -> dict[str, Any]:
    """One to twenty tasks; each may wait for some that come before it."""
    count = chance.choice([1, 1, 2, 3, 5, 8, 13, 20])
    tasks = [_a_task(chance, number) for number in range(count)]
    return {"goal": "chaos", "tasks": tasks}


def _a_task(chance: random.Random, number: int) -> dict[str, Any]:
    orders: dict[str, Any] = {"sleep": round(chance.choice([0.0, 0.0, 0.05, chance.uniform(0.1, 1.2)]), 3)}
    kind = chance.random()
    if kind < 0.08:
        orders |= {"fail": "not this time", "times": chance.randint(1, 2)}
    elif kind < 0.1:
        orders |= {"fail": "never", "final": chance.random() < 0.5}
    elif kind < 0.11:
        orders["output"] = "x" * LARGE
    elif kind < 0.12:
        orders["sleep"] = LONG_SECONDS
    elif kind < 0.18:
        orders["sleep"] = round(chance.uniform(*OUTLASTING_SECONDS), 3)
    earlier = [f"t{n}" for n in range(number)]
    wanted = min(number, chance.choice([0, 0, 1, 1, 2, 3]))
    task: dict[str, Any] = {
        "id": f"t{number}",
        "tag": chance.choice(TAGS),
        "description": json.dumps(orders),
        "dependencies": chance.sample(earlier, wanted),
    }
    if chance.random() < 0.1:  # given up soon, and sometimes finished by a worker that is cut off
        task |= {"timeout_seconds": round(chance.uniform(0.2, 1.0), 3), "max_attempts": chance.randint(1, 2)}
    return task
