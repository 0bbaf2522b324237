"""The fold of a task's turns: what whoever takes the task next goes on with, and what has been spent for it.

Only what the last claim's worker writes becomes part of the conversation. A claim goes on with the conversation if it
asks the same and is of the same attempt, or of one that resumes; any other begins anew. Effects outlive that. What a
call may cost that was about to be made counts as spent until its turn is stored: if its worker died, nobody knows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muster_protocol.messages import Claim, Effect, ModelTurn, ToolOutputs, TurnBody, Usage
from muster_protocol.messages.turns import StoredOutput, StoredReply

NOTHING = Usage()


class TurnAt(NamedTuple):
    """An entry and its place in the stream."""

    sequence: int
    body: TurnBody


@dataclass(slots=True)
class Step:
    """A reply, and the outputs of its tool calls once they are stored."""

    reply: StoredReply
    outputs: tuple[StoredOutput, ...] | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class TaskTurns:
    """All that is stored of the work on one task."""

    last_sequence: int = 0
    claim: Claim | None = None
    claim_sequence: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    effects: dict[str, StoredOutput | None] = field(default_factory=dict[str, StoredOutput | None])
    asking: Usage = NOTHING  # what a call may cost that has no turn yet
    _productive: set[int] = field(default_factory=set[int])  # claims under which a reply was stored
    _spent: dict[int, Usage] = field(default_factory=dict[int, Usage])  # by attempt, without `asking`
    _claims: dict[int, Claim] = field(default_factory=dict[int, Claim])

    @property
    def spent(self) -> Usage:
        """What all attempts have spent, and what a call that nobody knows of may have."""
        return sum(self._spent.values(), self.asking)

    def spent_by(self, attempt: int) -> Usage:
        """The same, of one attempt."""
        is_asking = self.claim is not None and self.claim.attempt == attempt
        return self._spent.get(attempt, NOTHING) + (self.asking if is_asking else NOTHING)

    def goes_on(self, claim: Claim) -> bool:
        """Whether this claim would go on with the conversation as it is."""
        last = self.claim
        return last is not None and last.fits == claim.fits and (last.attempt == claim.attempt or claim.resumes)

    def is_overtaken(self, claim: Claim) -> bool:
        """Whether somebody has the task who got it later than the one who would claim it now."""
        last = self.claim
        if last is None or last.attempt != claim.attempt:
            return last is not None and last.attempt > claim.attempt
        return last.task_sequence == claim.task_sequence and last.delivery > claim.delivery

    def productive_takes(self, attempt: int, task_sequence: int) -> set[tuple[str, int]]:
        """The takes of one message that stored a reply: who had which delivery."""
        claims = [self._claims[sequence] for sequence in self._productive]
        mine = [claim for claim in claims if (claim.attempt, claim.task_sequence) == (attempt, task_sequence)]
        return {(claim.worker, claim.delivery) for claim in mine}

    def note_productive(self, claim: int) -> None:
        self._productive.add(claim)

    def charge(self, attempt: int, usage: Usage) -> None:
        self._spent[attempt] = self._spent.get(attempt, NOTHING) + usage

    def claimed(self, sequence: int) -> Claim | None:
        """The claim that was stored there."""
        return self._claims.get(sequence)

    def begin(self, sequence: int, claim: Claim) -> None:
        """Somebody else has the task: whoever had it may have made a call of which nothing is stored."""
        if self.claim is not None:
            self.charge(self.claim.attempt, self.asking)
        if not self.goes_on(claim):
            self.steps = []
        self.claim, self.claim_sequence, self.asking = claim, sequence, claim.asking
        self._claims[sequence] = claim


def apply_turn(turns: TaskTurns, entry: TurnAt) -> None:
    """Add one entry. What is older than what is known changes nothing."""
    sequence, body = entry
    if sequence <= turns.last_sequence:
        return
    turns.last_sequence = sequence
    match body:
        case Claim():
            turns.begin(sequence, body)
        case ModelTurn():
            _take_turn(turns, body)
        case ToolOutputs() if turns.claim is not None and body.claim == turns.claim_sequence:
            if turns.steps and turns.steps[-1].outputs is None:
                turns.steps[-1].outputs, turns.steps[-1].tool_calls = body.outputs, body.tool_calls
            turns.asking = body.asking
        case Effect() if turns.effects.get(body.key) is None or body.outcome is not None:
            turns.effects[body.key] = body.outcome  # whoever wrote it, it has happened
        case _:
            return  # of a worker that had lost the task


def _take_turn(turns: TaskTurns, body: ModelTurn) -> None:
    """A reply is paid, whoever stores it; it becomes part of the conversation only under the last claim."""
    claim = turns.claimed(body.claim)
    if claim is None:
        return
    turns.charge(claim.attempt, body.usage)
    if body.claim != turns.claim_sequence:
        return
    turns.asking = NOTHING
    if body.reply is not None:
        turns.note_productive(body.claim)
        if not turns.steps or turns.steps[-1].outputs is not None:
            turns.steps.append(Step(body.reply))


def fold_turns(entries: Iterable[TurnAt]) -> TaskTurns:
    """What these entries, in their order, add up to."""
    turns = TaskTurns()
    for entry in entries:
        apply_turn(turns, entry)
    return turns
