"""The id of an attempt: what is dispatched, started and finished at most once."""

from typing import NamedTuple, Self

from muster_protocol.errors import Invalid
from muster_protocol.subjects import is_id, is_number


class AttemptId(NamedTuple):
    """One try at one task of one request. As text, `<request>.<task>.<attempt>`, it is the id of the task message."""

    request_id: str
    task_id: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.request_id}.{self.task_id}.{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The attempt that a task message's id names: ids have no dots, so there is one way to read it."""
        match text.split("."):
            case [request_id, task_id, attempt] if is_id(request_id) and is_id(task_id) and is_number(attempt):
                return cls(request_id, task_id, int(attempt))
            case _:
                raise Invalid(f"{text[:200]!r} is not <request>.<task>.<attempt>", "message id")
