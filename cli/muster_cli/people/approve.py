"""Asks whoever sits at the terminal whether a plan is carried out: shows it, and takes a yes, another plan or a no."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError
from rich.console import Console

from muster_bus.background import end, supervised
from muster_bus.buckets.measures import read_measures
from muster_cli.people.editor import contents, edit, read, written
from muster_cli.plan.view import PlanView, print_plan
from muster_cli.view.console import line_from_terminal
from muster_client import Client, NotAsked, Settled
from muster_protocol.errors import BrokerAway, Invalid, MusterError
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.messages import Decision, Usage, invalid
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, REJECT
from muster_protocol.questions import is_approval_asked, words_of
from muster_supervisor.planning.estimate import estimate_for
from muster_supervisor.planning.lint import Finding

if TYPE_CHECKING:
    from muster_agent.team.schema import Team

T = TypeVar("T")
CHOICES = {"a": APPROVE, "e": EDIT, "r": REJECT}
QUESTION = "[a]pprove, [e]dit or [r]eject?"


@dataclass(slots=True)
class Approval:
    """One plan that waits for a person, and the terminal at which that person sits."""

    client: Client
    request_id: str
    out: Console
    team: "Team | None"  # as its file here says, for the estimate
    editor: str

    async def ask(self) -> None:
        """Bring the plan to a decision, by this person or by anybody else; at once if the request is over first."""
        state = await self._until(is_approval_asked)
        if state.answer is not None or state.plan_entry is None or is_decided(state):
            return
        try:
            await self._show(state)
            with tempfile.TemporaryDirectory(prefix="muster-") as folder:
                path = Path(folder) / "plan.json"
                path.write_text(written(state.plan_entry.plan), encoding="utf-8")
                await self._decide(path)
        except (asyncio.CancelledError, BrokerAway, EOFError):
            self.out.print(f"\n{self.request_id} waits for approval: {how_to_reply(self.request_id)}", soft_wrap=True)
            raise

    async def _decide(self, path: Path) -> None:
        """Ask until there is a decision."""
        settled = supervised(self._until_settled(), "waiting for a decision")
        try:
            while not settled.done():
                typed = await self._unless(settled, line_from_terminal(QUESTION))
                choice = CHOICES.get((typed or "")[:1].lower())
                if choice is None:
                    continue
                try:
                    decision = await self._said(choice, path, settled)
                except (Invalid, MusterError) as error:
                    if isinstance(error, Settled | NotAsked | BrokerAway):
                        raise
                    self.out.print(str(error), style="red", soft_wrap=True)
                    continue
                kept = "the reply is kept; no supervisor has taken it in yet"
                self.out.print(kept if decision is None else words_of(decision), soft_wrap=True)
                return
            self.out.print("\nsomebody else has decided")
        except (Settled, NotAsked) as late:
            self.out.print(str(late), soft_wrap=True)
        finally:
            await end(settled)

    async def _said(self, choice: str, path: Path, settled: "asyncio.Task[None]") -> Decision | None:
        """Reply with what was chosen; raises with what is wrong with an edited plan."""
        if choice == REJECT:
            reason = await self._unless(settled, line_from_terminal("why?"))
            return await self.client.reply(self.request_id, REJECT, reason=reason or "")
        if choice == APPROVE:
            return await self.client.reply(self.request_id, APPROVE)
        if not await edit(path, self.editor):
            raise Invalid("is as it was: nothing was changed", "plan")
        try:
            plan = read(contents(path))
        except ValidationError as error:
            raise invalid(error) from None
        return await self.client.reply(self.request_id, EDIT, plan=plan)

    async def _show(self, state: RequestState) -> None:
        entry = state.plan_entry
        assert entry is not None
        findings = [Finding("warning", where, text) for where, _, text in (w.partition(": ") for w in entry.warnings)]
        estimate = None
        if self.team is not None and self.team.team == entry.team:
            measures = await read_measures(self.client.bus, entry.team)
            estimate = estimate_for(entry.plan, self.team, measures, entry.in_flight)
        print_plan(self.out, PlanView(entry.plan, findings, estimate, Usage()), "nothing runs before you approve it")

    async def _until_settled(self) -> None:
        await self._until(is_decided)

    async def _until(self, is_so: Callable[[RequestState], bool]) -> RequestState:
        """The state when it is so, or when the request is answered."""
        state = RequestState(self.request_id)
        async with aclosing(self.client.updates(self.request_id)) as updates:
            async for update in updates:
                if isinstance(update, Entry):
                    apply(state, update)
                    if state.plan_entry is not None and is_so(state):
                        break
        return state

    async def _unless(self, settled: "asyncio.Task[None]", typing: Awaitable[T]) -> T | None:
        """What a person types; None as soon as somebody else has decided. Raises EOFError at the end of the input."""
        reading = asyncio.ensure_future(typing)
        try:
            await asyncio.wait((reading, settled), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return None
            if reading.result() is None:
                raise EOFError
            return reading.result()
        finally:
            await end(reading)


def how_to_reply(request_id: str) -> str:
    return f"`muster reply {request_id} approve`, `… edit --plan FILE` or `… reject --reason TEXT`"


def is_decided(state: RequestState) -> bool:
    """Whether somebody has replied, or nobody in time."""
    return any(one.question.cause == APPROVAL and one.decision is not None for one in state.questions.values())
