"""What went wrong in a request, attempt by attempt and tool call by tool call: the failed steps of its timeline."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muster_client.timeline.steps import Step, StepStatus, What
from muster_protocol.status import place_of

_FAILED = (StepStatus.FAILED, StepStatus.LOST)


@dataclass(frozen=True, slots=True)
class FailedStep:
    """One attempt or tool call that failed, and why."""

    step: Step

    @property
    def tool(self) -> str:
        return str(self.step.details.get("tool", "")) if self.step.what is What.TOOL else ""

    @property
    def reason(self) -> str:
        """The reason and, where the stack tells it, the line of code."""
        return f"{self.step.error or 'no reason given'}{place_of(self.step.details.get('stack'))}"

    def as_json(self) -> dict[str, Any]:
        step = self.step
        return {
            "task": step.task,
            "attempt": step.attempt,
            "worker": step.worker or None,
            "role": step.role or None,
            "tool": self.tool or None,
            "status": step.status.value,
            "error_class": step.error_class or None,
            "reason": self.reason,
            "at": step.end,
        }

    def __str__(self) -> str:
        step = self.step
        by = f" by worker-{step.worker}" if step.worker else ", nobody reported"
        what = f"tool {self.tool} failed" if self.tool else f"{step.status.value}{by}"
        error_class = f"{step.error_class}: " if step.error_class else ""
        return f"✗ {step.task}  attempt {step.attempt}  {what}: {error_class}{self.reason}"


def failures_in(steps: Iterable[Step]) -> list[FailedStep]:
    """The failed ones among these steps, in their order."""
    return [FailedStep(step) for step in steps if step.what in (What.ATTEMPT, What.TOOL) and step.status in _FAILED]
