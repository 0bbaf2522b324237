"""Why a ready task is not given out: no role that can do it answers, and each is left alone for a while. Pure."""

from collections.abc import Mapping

from muster_protocol.fold.state import TaskState
from muster_protocol.workers.breaker import Breaker
from muster_protocol.workers.signs import Signs

MAX_NAMED = 3


def held_text(task: TaskState, breakers: Mapping[str, Breaker], signs: Signs | None, now: float) -> str:
    """In words, with the time of the next try; empty: a role that answers can do it, or whose turn it is to try."""
    roles = able(task, signs)
    free_at = [breakers[role].free_at for role in roles if role in breakers]
    if not roles or len(free_at) < len(roles) or min(free_at) <= now:
        return ""
    named = ", ".join(f"'{role}'" for role in roles[:MAX_NAMED])
    who = f"role {named} does" if len(roles) == 1 else f"roles {named} do"
    return f"held back: {who} not answer, the next try is in {min(free_at) - now:.0f} s"


def able(task: TaskState, signs: Signs | None) -> tuple[str, ...]:
    """The roles of which one gets it: those that match, else those that have its tag; none if it names a worker."""
    if task.spec.worker is not None:
        return ()
    if task.spec.roles:
        return task.spec.roles
    cards = [role for card in signs.cards.values() for role in card.roles] if signs is not None else []
    serving = tuple(dict.fromkeys(role.name for role in cards if task.tag in role.tags))
    return serving or (task.tag,)
