"""What a planner sees of a role: a line about who it is and what it can look at, which its workers renew."""

from collections.abc import Sequence

from pydantic import Field

from muster_protocol.plan import Frozen

MAX_CARDS = 16 * 1024  # characters of all cards of a worker together: they are written every few seconds
MAX_LINE = 400  # characters of one thing that a card says: every card of a team stands in one prompt


class RoleCard(Frozen):
    """A role as a planner sees it. What it leaves out is not known."""

    name: str
    tags: tuple[str, ...] = ()
    description: str = ""
    tools: tuple[str, ...] = ()
    corpus: str = ""  # the documents that it can search
    tables: str = ""  # the tables that it can query
    provider: str = ""  # of its model, if it cannot do without that one; see breaker.py
    is_function: bool = False  # it computes with `inputs` and reads no prose
    inputs: dict[str, str] = Field(default_factory=dict[str, str])  # of a function: their names, and what they are


def line(text: str) -> str:
    """The text on one line, cut where a card has no more room."""
    words = " ".join(text.split())
    return words if len(words) <= MAX_LINE else f"{words[: MAX_LINE - 1]}…"


def within(cards: Sequence[RoleCard]) -> tuple[RoleCard, ...]:
    """The cards that one worker can show: as they are, or without what takes most room, or none."""
    kept = {"name", "tags", "provider", "is_function"}
    shorter = [RoleCard.model_validate(card.model_dump(include=kept)) for card in cards]
    for shown in (tuple(cards), tuple(shorter)):
        if sum(len(card.model_dump_json()) for card in shown) <= MAX_CARDS:
            return shown
    return ()
