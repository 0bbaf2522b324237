"""Which attempt the code that runs now works for: every line that it logs carries these as fields.

Also what a role's own code or a library logs: a context variable travels into tasks and threads.
"""

from contextvars import ContextVar

from muster_protocol.attempt_id import AttemptId

NOTHING = AttemptId("", "", 0)
_about: ContextVar[AttemptId] = ContextVar("muster.about", default=NOTHING)


def work_for(attempt: AttemptId) -> None:
    """From here on, in this asyncio task and whatever it starts, the work is for this attempt."""
    _about.set(attempt)


def work_for_request(request_id: str) -> None:
    """From here on the work is for this request as a whole."""
    _about.set(AttemptId(request_id, "", 0))


def fields_of(attempt: AttemptId | None) -> dict[str, object]:
    """The fields of a line about an attempt that somebody else works for; none if there is no single one."""
    return {} if attempt is None else dict(zip(("request", "task", "attempt"), attempt, strict=True))


def worked_for() -> AttemptId:
    """The attempt that the work is for; its parts are empty where there is none."""
    return _about.get()
