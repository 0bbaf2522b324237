"""On `results.<request_id>`: what people said, in the log."""

from typing import ClassVar, Literal

from muster_protocol.messages.entry import LogEntry
from muster_protocol.sender import Origin


class Decision(LogEntry):
    """What somebody said on `control`, copied into the log before it is acted upon."""

    kind: ClassVar[str] = "decision"
    free_text: ClassVar[tuple[str, ...]] = ("reason",)

    decision: Literal["cancel"]
    control_sequence: int
    by: str
    reason: str = ""

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}.{self.control_sequence}"
