"""How a request stands while its plan may still grow, and what a model that leads is then asked."""

from dataclasses import dataclass

from muster_protocol.messages import Output
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.role_card import RoleCard


@dataclass(frozen=True, slots=True)
class TaskShown:
    """A task as whoever leads sees it: what was asked of whom, and what came of it."""

    spec: TaskSpec
    status: str  # done, failed or skipped; anything else has not ended
    role: str = ""
    description: str = ""  # of its last attempt, where that was another one
    attempts: int = 0
    output: Output = None
    reason: str = ""  # why it is not done


@dataclass(frozen=True, slots=True)
class Room:
    """How far the plan may still grow; None: no limit that is known."""

    tasks: int
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The request, what came of its tasks so far, who could do more, and what is left."""

    text: str
    tasks: tuple[TaskShown, ...]
    roles: tuple[RoleCard, ...]
    room: Room
    goal: str = ""
    away: tuple[str, ...] = ()  # of these roles no worker is up
    persona: str = ""
    guidelines: str = ""
    today: str = ""
    notes: tuple[str, ...] = ()  # of people
    contradictions: tuple[str, ...] = ()  # between outputs, found without a model
    not_shown: str = ""  # what is said in place of the tasks that are left out


@dataclass(frozen=True, slots=True)
class ReviewBrief:
    """Say whether the results are enough, or which further tasks are worth their cost. After a reply that was refused
    it has the reply and its mistakes."""

    standing: Standing
    number: int = 1
    rounds: int = 1
    draft: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaceBrief:
    """Say whether the gap stays that a failed task leaves, or what takes the place of what was lost with it."""

    standing: Standing
    failed: str  # the id of the task that failed for good
    errors: tuple[str, ...] = ()  # of its attempts, in their order
    tried: tuple[str, ...] = ()  # the roles that failed
    skipped: tuple[str, ...] = ()  # ids of those that needed it
    draft: str = ""
    mistakes: tuple[str, ...] = ()
