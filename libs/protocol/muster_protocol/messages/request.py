"""On `requests.<team>`: what a user asks of a team."""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from muster_protocol import subjects
from muster_protocol.messages.base import Message
from muster_protocol.plan import Frozen, Plan
from muster_protocol.sender import Origin
from muster_protocol.subjects import Priority
from muster_protocol.unfold import MapOver

DEFAULT_DEADLINE_SECONDS = 600.0  # where neither the request nor the team file says one


class Budget(Frozen):
    """The most that a request may spend, over all its workers."""

    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    tasks: int | None = Field(default=None, ge=1)
    depth: int | None = Field(default=None, ge=0)


class Request(Message):
    """What a user asks of a team: exactly one of text, plan or map."""

    kind: ClassVar[str] = "request"

    id: str | None = None
    text: str | None = None
    plan: Plan | None = None
    map: MapOver | None = None
    priority: Priority = "normal"
    deadline_seconds: float | None = Field(default=None, gt=0)
    in_flight: int | None = Field(default=None, ge=1)
    budget: Budget = Budget()
    approve: bool | None = None  # a person has to approve the plan; absent: what the team says
    pause_for_people: bool | None = None  # the clock stands still while a person is waited for; absent: the same
    num_tasks: int | None = Field(default=None, ge=1)
    answer_schema: dict[str, Any] | None = None
    conversation: str | None = None
    callback_url: str | None = None
    replay_of: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        given = [name for name in ("text", "plan", "map") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a request has exactly one of text, plan or map; this one has {given or 'none'}")
        if self.text is not None and not self.text.strip():
            raise ValueError("text is empty")
        return self

    @property
    def asked(self) -> str:
        """What is asked, as a list of requests shows it."""
        if self.map is not None:
            return self.map.template.description
        return self.text or (self.plan.goal if self.plan is not None else "")

    def subject_for(self, origin: Origin) -> str:
        return subjects.requests(origin.team)

    def id_for(self, origin: Origin) -> str:
        """None where somebody chose the id: the broker drops a repetition for minutes, the log knows it for days."""
        return "" if self.id else origin.request_id
