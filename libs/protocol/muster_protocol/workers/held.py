"""Why a task waits although there is room: no role that can do it answers, its provider does not, or it is not its
turn to ask there. Pure."""

from collections.abc import Mapping

from muster_protocol.fold.state import TaskState
from muster_protocol.messages import Progress
from muster_protocol.workers.breaker import PROVIDER, Breaker
from muster_protocol.workers.role_card import RoleCard
from muster_protocol.workers.signs import Signs

MAX_NAMED = 3


def held_text(task: TaskState, breakers: Mapping[str, Breaker], signs: Signs | None, now: float) -> str:
    """In words, with the time of the next try; empty: a role that answers can do it, or whose turn it is to try."""
    providers = {card.name: card.provider for card in _cards(signs)}
    holders = [_holder(role, providers.get(role, ""), breakers) for role in able(task, signs)]
    free_at = min((at for _, at in holders), default=0.0)
    if free_at <= now:
        return ""
    names = list(dict.fromkeys(name for name, _ in holders))[:MAX_NAMED]
    does = "does" if len(names) == 1 else "do"
    return f"held back: {', '.join(names)} {does} not answer, the next try is in {free_at - now:.0f} s"


def _holder(role: str, provider: str, breakers: Mapping[str, Breaker]) -> tuple[str, float]:
    """What keeps a role from being given anything, and until when; 0: nothing does."""
    keys = {f"role '{role}'": role, f"provider '{provider}'": f"{PROVIDER}{provider}"}
    found = [(name, breakers[key].free_at) for name, key in keys.items() if key in breakers]
    return max(found, key=lambda one: one[1], default=("", 0.0))


def waits_text(said: Progress | None, now: float) -> str:
    """What a worker said of an attempt that waits for a limit, with the time that is left of it; empty: it does not."""
    if said is None or not said.waits_for:
        return ""
    about = f", about {max(1.0, said.waits_until - now):.0f} s" if said.waits_until else ""
    return f"waits for {said.waits_for}{about}"


def able(task: TaskState, signs: Signs | None) -> tuple[str, ...]:
    """The roles of which one gets it: those that match, else those that have its tag; none if it names a worker."""
    if task.spec.worker is not None:
        return ()
    if task.spec.roles:
        return task.spec.roles
    serving = tuple(dict.fromkeys(card.name for card in _cards(signs) if task.tag in card.tags))
    return serving or (task.tag,)


def _cards(signs: Signs | None) -> list[RoleCard]:
    """What the live workers say of their roles."""
    return [role for card in signs.cards.values() for role in card.roles] if signs is not None else []
