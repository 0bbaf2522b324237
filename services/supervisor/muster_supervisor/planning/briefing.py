"""What a planner is told beside the request: its team as it is right now, its limits, and the day. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster_agent.models.port import PlanBrief
from muster_agent.team.schema import Team
from muster_protocol.messages import Request
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.role_card import RoleCard


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen when a plan is made: who is up, the seconds until the deadline, the day, and what people said."""

    workers: tuple[WorkerCard, ...] = ()
    seconds: float | None = None
    today: str = ""
    notes: tuple[str, ...] = ()  # that people have sent by then


NOTHING_SEEN = Seen()


def brief_of(request: Request, team: Team, seen: Seen) -> PlanBrief:
    """The brief of a planner."""
    roles = live_cards(team, seen)
    return PlanBrief(
        text=request.text or "",
        roles=roles,
        away=away_of(roles, seen),
        workers=team.workers,
        persona=team.supervisor.persona,
        guidelines=team.supervisor.guidelines,
        num_tasks=request.num_tasks,
        max_tasks=request.budget.tasks,
        tokens=request.budget.tokens,
        usd=request.budget.usd,
        max_attempts=team.limits.max_attempts,
        seconds=seen.seconds,
        today=seen.today,
        notes=seen.notes,
    )


def away_of(roles: Iterable[RoleCard], seen: Seen) -> tuple[str, ...]:
    """The roles of which no worker is up."""
    up = {tag for worker in seen.workers for tag in worker.tags}
    names = [role.name for role in roles]
    away = tuple(name for name in names if name not in up)
    return () if len(away) == len(names) else away  # nobody is up yet: that says nothing about one of them


def live_cards(team: Team, seen: Seen) -> tuple[RoleCard, ...]:
    """The roles of the team; of those that are up, with what their workers can look at."""
    shown = {card.name: card for worker in seen.workers for card in worker.roles}
    return tuple(_with_material(card, shown.get(card.name)) for card in team.cards)


def _with_material(card: RoleCard, shown: RoleCard | None) -> RoleCard:
    """What the team file says of a role holds; what only its workers can see is added."""
    if shown is None:
        return card
    return card.model_copy(update={"corpus": shown.corpus, "tables": shown.tables, "tools": shown.tools or card.tools})
