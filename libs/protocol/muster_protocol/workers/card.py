"""The card of a worker in the bucket `workers`: its sign of life, and what others may know of it."""

from pydantic import Field

from muster_protocol.plan import Frozen
from muster_protocol.workers.role_card import RoleCard

BEAT_SECONDS = 5.0  # between two renewals of a card
SILENT_SECONDS = 8.0  # without one: a beat did not come, and a busy machine has had three seconds more
FORGOTTEN_SECONDS = 15.0  # after which the bucket drops a card


class WorkerCard(Frozen):
    """Who is here, with which tags and how busy. What it leaves out is not known."""

    name: str = ""
    tags: tuple[str, ...] = ()
    slots: int = 0
    busy: int = 0
    roles: tuple[RoleCard, ...] = ()  # what those who plan may know of its roles
    renewed_at: float = Field(default=0.0, exclude=True)  # broker time; known to the bucket, never written
