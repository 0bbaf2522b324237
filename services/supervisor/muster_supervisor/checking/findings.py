"""What the checks find in the results of a request and in the text that was made of them. Pure; the cost is bounded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from muster_agent.models.port import as_text
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.messages import ConfidenceParts, Output
from muster_protocol.plan import TaskSpec
from muster_supervisor.checking.claims import MAX_CHARACTERS, Claim, claims
from muster_supervisor.checking.contradictions import contradictions
from muster_supervisor.checking.sources import sources
from muster_supervisor.checking.support import Support
from muster_supervisor.checking.words import roots, tokens_of

MAX_COMPARED = 200_000  # characters of all outputs together that are compared with each other
MAX_CLAIMS = 2_000
NO_TASKS: frozenset[str] = frozenset()


class Done(NamedTuple):
    """A task that is done, as the checks see it."""

    spec: TaskSpec
    description: str
    output: Output


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in the results of so many tasks."""

    of: int = 0
    contradictions: tuple[str, ...] = ()
    contradicting: frozenset[str] = NO_TASKS  # the tasks whose results contradict each other
    sources: tuple[str, ...] = ()
    claims: Mapping[str, list[Claim]] | None = None
    unsupported: tuple[str, ...] = ()
    supported: float = 1.0  # the part of the text's figures and addresses that some result has

    def confidence(self, done: int, tasks: int) -> ConfidenceParts:
        """What the confidence is the product of: the part of the tasks, of the results, and of the figures."""
        agreeing = max(0.0, 1 - len(self.contradicting) / max(1, done))
        return ConfidenceParts(
            done=round(done / tasks, 3), agreeing=round(agreeing, 3), supported=round(self.supported, 3)
        )


NOTHING_FOUND = Findings()


def to_check(state: RequestState) -> dict[str, Done]:
    """What the checks read, taken out of a state that changes while they read."""
    return {
        task_id: Done(task.spec, task.description, task.success.output)
        for task_id, task in state.tasks.items()
        if task.phase is TaskPhase.DONE and task.success is not None and _is_read(task.success.output)
    }


def characters_of(done: Mapping[str, Done]) -> int:
    """About how much there is to read."""
    return sum(len(task.output) if isinstance(task.output, str) else 200 for task in done.values())


def find(done: Mapping[str, Done], of: int) -> Findings:
    """What contradicts what in these results, and what they name as their sources."""
    found: dict[str, list[Claim]] = {}
    room, count = MAX_COMPARED, 0
    for task_id, (spec, _, output) in done.items():
        if not isinstance(output, str) and spec.item_of:
            continue  # one template over many items: the same fields, each of something else
        room -= min(MAX_CHARACTERS, len(output)) if isinstance(output, str) else 200
        if room < 0 or count >= MAX_CLAIMS:
            break
        if claimed := claims(task_id, output):
            found[task_id] = claimed
            count += len(claimed)
    about = {task_id: _subject(done[task_id]) for task_id in found}
    between = contradictions(found, partial(_are_apart, done, about)) if len(found) > 1 else []
    return Findings(
        of=of,
        contradictions=tuple(map(str, between)),
        contradicting=frozenset(claim.task_id for each in between for claim in (each.first, each.second)),
        sources=sources(task.output for task in done.values()),
        claims=found,
    )


def checked(
    findings: Findings, done: Mapping[str, Done], text: str, given: Sequence[str], counts: Sequence[int]
) -> Findings:
    """The findings with what stands in a composed text, and neither in a result nor in what was given."""
    texts = [*given, *(as_text(task.output) for task in done.values())]
    unsupported, share = Support(texts, counts, findings.claims or {}).unsupported(text)
    return replace(findings, unsupported=unsupported, supported=share)


def _is_read(output: Output) -> bool:
    """Whether there is something in it that the checks can judge; a bare number says nothing about its subject."""
    return isinstance(output, (str, dict, list)) and output != ""


def _subject(task: Done) -> frozenset[str]:
    """The names by which a task says what it is about: in its description, its inputs and its label."""
    _, _, rest = task.description[:2000].partition(" ")
    named = [token for token in tokens_of(f"the {rest}") if not token.islower()]
    given = [token for value in task.spec.inputs.values() if isinstance(value, str) for token in tokens_of(value[:200])]
    return roots([*named, *given, *tokens_of(task.spec.label)])


def _are_apart(done: Mapping[str, Done], about: Mapping[str, frozenset[str]], first: Claim, second: Claim) -> bool:
    """Whether two tasks are about different things, or one worked on what the other gave."""
    mine, others = about[first.task_id], about[second.task_id]
    if not first.names & second.names and mine - others and others - mine:
        return True
    one, other = done[first.task_id], done[second.task_id]
    if first.is_field and second.is_field and not first.names & second.names:  # fields of the same name, but of what?
        is_same = bool(mine & others) or one.description == other.description
        if not is_same or one.spec.inputs != other.spec.inputs:
            return True

    def needs(name: str) -> Sequence[str]:
        return done[name].spec.dependencies if name in done else ()

    return _leads_to(first.task_id, second.task_id, needs) or _leads_to(second.task_id, first.task_id, needs)


def _leads_to(source: str, target: str, needs: Callable[[str], Sequence[str]]) -> bool:
    waiting, seen = [target], {target}
    while waiting:
        for needed in needs(waiting.pop()):
            if needed == source:
                return True
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return False
