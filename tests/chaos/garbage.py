"""Messages that nobody can use, on every subject: each must get exactly one error and disturb nobody."""

import random
import time
from collections.abc import Mapping

from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from tests.chaos.ledger import Ledger, Litter, Sent

GIVE_UP_AFTER_SECONDS = 20.0
DEADLINE_SECONDS = 30.0
STREAMS = {"requests": "REQUESTS", "tasks": "TASKS", "results": "RESULTS", "events": "EVENTS", "control": "CONTROL"}
KINDS = {"tasks": "task", "results": "result", "events": "progress", "control": "cancel"}
SENDERS = {"tasks": "supervisor/x", "results": "worker/x", "events": "worker/x", "control": "client/x"}


async def throw(bus: Bus, ledger: Ledger, seed: int, name: str, meant: str) -> None:
    """One piece of garbage, somewhere; on a subject with a request's id, the one that is meant."""
    chance = random.Random(seed)
    where = chance.choice([*STREAMS, "errors"])
    subject = {"requests": "requests.default", "tasks": "tasks.scripted", "errors": "errors"}.get(
        where, f"{where}.{meant}"
    )
    what, headers, body = _piece(chance, where, name)
    sequence: int | None = None
    try:
        stored = await bus.publisher.store(
            subject, body, {**headers, "Nats-Msg-Id": name}, give_up_after=GIVE_UP_AFTER_SECONDS
        )
        sequence = stored.sequence
    except MusterError:
        what += " (no word came)"
    if where == "requests":
        sent = ledger.sent[name] = Sent(name, DEADLINE_SECONDS, time.time(), is_valid=False)
        if sequence is not None:
            sent.acked(time.time())
    ledger.litter.append(Litter(f"{what} on {subject}", STREAMS.get(where, "ERRORS"), sequence, where != "errors"))


def _piece(chance: random.Random, where: str, name: str) -> tuple[str, Mapping[str, str], bytes]:
    marker = name.encode()
    if where == "requests":
        return chance.choice(
            [
                ("broken JSON", {}, b"{broken " + marker),
                ("an empty request", {}, b'{"text": "", "metadata": {"x": "%s"}}' % marker),
                ("a false sender", {"sender": "not a sender!"}, b'{"text": "%s"}' % marker),
                ("a large body", {}, b'{"text": "%s' % marker + b"x" * 600_000 + b'"}'),
                ("a dangling reference", {"body-ref": "0" * 64 + ".9"}, b""),
                ("a plan in a circle", {}, _CIRCLE),
            ]
        )
    good = {"sender": SENDERS.get(where, "client/x"), "kind": KINDS.get(where, "error")}
    return chance.choice(
        [
            ("no sender", {"kind": good["kind"]}, b'{"x": "%s"}' % marker),
            ("broken JSON", good, b"{broken " + marker),
            ("an unknown kind", {**good, "kind": "surprise"}, b'{"x": "%s"}' % marker),
            ("a large body", good, marker + b"x" * 600_000),
        ]
    )


_CIRCLE = b'{"plan": {"tasks": [{"id": "a", "description": "{}", "tag": "scripted", "dependencies": ["a"]}]}}'
