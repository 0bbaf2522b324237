"""What the registry says about workers: who is alive, who is silent or gone, and when its task is tried again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster_protocol.sender import worker_name
from muster_protocol.workers.card import BEAT_SECONDS, FORGOTTEN_SECONDS, SILENT_SECONDS, WorkerCard

STUCK = "what it runs blocks it, or it is dead or cut off"


@dataclass(frozen=True, slots=True)
class Signs:
    """The registry at one moment of broker time."""

    at: float
    cards: Mapping[str, WorkerCard] = field(default_factory=dict[str, WorkerCard])
    left: Mapping[str, float] = field(default_factory=dict[str, float])  # of workers without a card: its last moment
    ack_wait_seconds: float | None = None  # how long after the end of a worker its tasks are given out again

    def trouble(self, worker: str) -> str | None:
        """What is wrong with a worker that runs something; None: it is well."""
        card = self.cards.get(worker)
        if card is None:
            return f"its worker is gone ({worker_name(worker)}); {self._again(worker)}"
        if not self.is_silent(card):
            return None
        return f"{worker_name(worker)} has given no sign for {self.silence(card):.0f} s: {STUCK}"

    def silence(self, card: WorkerCard) -> float:
        """Seconds since a worker was last heard of."""
        return max(0.0, self.at - card.renewed_at)

    def is_silent(self, card: WorkerCard) -> bool:
        return self.silence(card) > SILENT_SECONDS

    def silent_for(self, tag: str | None) -> list[WorkerCard]:
        """The silent workers of a tag, any of which may have what waits; none while it may wait for a full worker."""
        serving = [card for card in self.cards.values() if tag in card.tags]
        silent = [card for card in serving if self.is_silent(card)]
        is_full = any(card.busy >= card.slots for card in serving if card not in silent)
        return [] if is_full else silent

    def after(self, before: "Signs | None") -> "Signs":
        """The same moment, knowing what was seen before: whose card was last renewed when."""
        if before is None:
            return self
        # a worker may have lived for almost a beat after the last renewal of its card
        last = {name: card.renewed_at + BEAT_SECONDS for name, card in before.cards.items()}
        known = {**last, **before.left, **self.left}
        return replace(self, left={name: time for name, time in known.items() if name not in self.cards})

    def _again(self, worker: str) -> str:
        if self.ack_wait_seconds is None:
            return "tried again when its lease has run out"
        # a card that was dropped was not renewed for so long, and its worker died at most a beat after that
        end = self.left.get(worker, self.at - FORGOTTEN_SECONDS + BEAT_SECONDS)
        left = end + self.ack_wait_seconds - self.at
        return f"tried again in {left:.0f} s" if left >= 1 else "tried again as soon as a worker takes it"
