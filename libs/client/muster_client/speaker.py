"""What a client says to a request that goes on: cancel, reply, note, retry, reassign."""

from typing import Unpack

from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_client.orders import order
from muster_client.replies import ReplyFields, question_for, reply_to
from muster_client.saying import say
from muster_protocol import subjects
from muster_protocol.fold import RequestState, fold
from muster_protocol.messages import Cancel, Decision, Note, ReassignTask, Reply, RetryTask


class Speaker:
    """One connection over which somebody speaks to requests."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    async def state(self, request_id: str) -> RequestState:
        """What the log says now."""
        request_id = subjects.as_id(request_id)
        return fold(request_id, await read_log(self.bus, request_id, from_leader=True))

    async def cancel(self, request_id: str, reason: str = "") -> None:
        """Ask the owner to end the request now; returns when that is kept."""
        await say(self.bus, Cancel(request_id=subjects.as_id(request_id), reason=reason))

    async def reply(self, request_id: str, choice: str = "", **more: Unpack[ReplyFields]) -> Decision | None:
        """Reply to what a request asks; the decision that it became. None: it is kept, and nobody has taken it in yet.

        Raises Settled with the decision that stands, NotAsked, and Invalid with all that is wrong with the reply.
        """
        state = await self.state(request_id)
        asked = question_for(state, more.pop("question", ""))
        fields = {"request_id": state.request_id, "question": asked.question.id, "choice": choice, **more}
        return await reply_to(self.bus, Reply.of(fields))

    async def note(self, request_id: str, text: str) -> None:
        """Say something about a request that goes on; returns when that is kept."""
        await say(self.bus, Note.of({"request_id": subjects.as_id(request_id), "text": text}))

    async def retry(self, request_id: str, task_id: str, reason: str = "") -> Decision | None:
        """Try a task again that failed or waits for its next attempt. None: it is kept, nobody has taken it in yet.

        Raises Answered if the request is over, and Invalid with the reason why it cannot be done.
        """
        fields = {"request_id": subjects.as_id(request_id), "task_id": task_id, "reason": reason}
        return await order(self.bus, RetryTask.of(fields))

    async def reassign(
        self, request_id: str, task_id: str, role: str | None = None, *, worker: str | None = None, reason: str = ""
    ) -> Decision | None:
        """Give a task that is not done to another role, or to one worker; returns and raises as `retry` does."""
        fields = {"request_id": subjects.as_id(request_id), "task_id": task_id, "role": role, "worker": worker}
        return await order(self.bus, ReassignTask.of({**fields, "reason": reason}))
