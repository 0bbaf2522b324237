"""The text of an answer without a model: outputs put one after the other, and gaps named. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster_agent.models.port import as_text
from muster_protocol.counted import counted
from muster_protocol.fold import RequestState, TaskPhase, TaskState
from muster_protocol.fold.growth import lacking, replaced
from muster_protocol.messages import Output, Selected, Usage
from muster_protocol.messages.growth import REVIEW, kind_of
from muster_supervisor.checking.findings import NOTHING_FOUND, Findings

MAX_MISSING = 20  # gaps in a text; the answer's own list has them all
CUT_CHARACTERS = 100_000  # what is left of a text that is too long for one message


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of an answer and what it was made of."""

    text: str
    outputs: dict[str, Output]
    is_one_answer: bool = False  # the only output is all that was to come, and needs no name
    usage: Usage = field(default_factory=Usage)
    is_composed: bool = False  # by a model
    is_cut: bool = False
    left_out: tuple[str, ...] = ()  # tasks whose outputs are too long for the answer
    findings: Findings = NOTHING_FOUND
    selected: Selected | None = None  # where the plan says `select`
    value: Output = None  # what fits the schema that was asked for
    is_fitted: bool = False
    misfits: tuple[str, ...] = ()  # why nothing does

    @property
    def made_of(self) -> frozenset[str]:
        return frozenset(self.outputs) | frozenset(self.left_out)

    @property
    def output(self) -> Output:
        """The answer's `output`: each output under the id of its task."""
        if self.is_fitted:
            return self.value
        if self.is_one_answer:
            return next(iter(self.outputs.values()), None)
        return self.outputs or None


def parts(state: RequestState) -> dict[str, TaskState]:
    """The done tasks that an answer is made of: those that no final task which is done was made of.

    So these are the final tasks, and where one of them is missing, also what was done on the way to it.
    """
    reached = _done_ends(state)
    used: set[str] = set()
    while reached:
        for needed in _made_of(state, reached.pop()):
            if needed not in used:
                used.add(needed)
                reached.append(needed)
    return {
        task_id: task
        for task_id, task in state.tasks.items()
        if task.phase is TaskPhase.DONE and task_id not in used and not task.unfolded
    }


def _made_of(state: RequestState, task_id: str) -> tuple[str, ...]:
    """What a task was made of: what it depends on, and for an item also whoever gave the list."""
    task = state.tasks[task_id]
    spec = task.spec
    needs = spec.dependencies
    if task.grown_by and needs:
        needs = tuple(name for name in needs if _stands_for(task, state.tasks[name]))
    return needs if spec.item_of is None or spec.item_of not in state.tasks else (*needs, spec.item_of)


def _stands_for(reader: TaskState, needed: TaskState) -> bool:
    """Whether a task says all that one says which it read; what a review adds, comes beside what there was."""
    return kind_of(reader.grown_by) != REVIEW or reader.grown_by == needed.grown_by


def chosen(state: RequestState, selected: Selected | None = None) -> dict[str, TaskState]:
    """The parts, or where the plan says `select`, the final task that was picked, else the first that is done."""
    if state.plan_entry is not None and state.plan_entry.plan.aggregation == "select":
        return picked(state, selected) or parts(state)
    return parts(state)


def candidates(state: RequestState) -> dict[str, TaskState]:
    """The final tasks that are done: where the plan says `select`, one of them is the answer."""
    return {task_id: state.tasks[task_id] for task_id in _done_ends(state)}


def picked(state: RequestState, selected: Selected | None) -> dict[str, TaskState]:
    """The candidate that was selected, else the first."""
    found = candidates(state)
    task_id = selected.task_id if selected is not None and selected.task_id in found else next(iter(found), None)
    return {task_id: found[task_id]} if task_id is not None else {}


def _done_ends(state: RequestState) -> list[str]:
    return [name for name, task in state.tasks.items() if task.phase is TaskPhase.DONE and _is_end(state, task)]


def _is_end(state: RequestState, task: TaskState) -> bool:
    """Whether nobody's output stands for its own; a list that was gone over ends in its items."""
    if not task.dependents:
        return not task.unfolded
    return not task.unfolded and not any(_stands_for(state.tasks[name], task) for name in task.dependents)


def _is_one_answer(state: RequestState, found: Mapping[str, TaskState]) -> bool:
    """Whether the only part is the final task of the plan, or the one that it selects."""
    if len(found) != 1 or not _is_end(state, next(iter(found.values()))):
        return False
    is_select = state.plan_entry is not None and state.plan_entry.plan.aggregation == "select"
    made_good = replaced(state)
    return is_select or sum(_is_end(state, task) for name, task in state.tasks.items() if name not in made_good) == 1


def gaps(state: RequestState) -> tuple[str, ...]:
    """What is missing, each with the task that was to give it and the reason."""
    return tuple(_gap(task) for task in lacking(state))


def _gap(task: TaskState) -> str:
    if task.not_added:
        return f"{task.spec.name} is done, but {task.not_added}"
    return f"{task.spec.name} {_word(task)}" + (f": {task.reason}" if task.reason else "")


def merge(state: RequestState, reason: str, selected: Selected | None = None) -> Draft:
    """The outputs one after the other: needs no model, and gives the same text every time."""
    found = chosen(state, selected)
    outputs = {task_id: task.output for task_id, task in found.items()}
    if not outputs:
        return Draft(_nothing(state, reason), outputs)
    if _is_one_answer(state, found):
        text = as_text(next(iter(outputs.values())))
        return Draft(text, outputs, is_one_answer=True, selected=selected or _by_rule(state))
    return Draft(_sections(state, outputs) + (_missing(state) if len(outputs) == 1 else ""), outputs)


def completed(draft: Draft, state: RequestState, reason: str) -> Draft:
    """The draft with what was done since it was made: the answer's table and its output say the same."""
    made_of = frozenset(chosen(state, draft.selected))
    if made_of == draft.made_of:
        return draft
    plain = merge(state, reason, draft.selected)
    if draft.is_cut:
        return cut(plain, "it was cut before")
    if not draft.is_composed:
        return plain
    added = {task_id: state.tasks[task_id].output for task_id in state.tasks if task_id in made_of - draft.made_of}
    text = f"{draft.text}\n\n{_sections(state, added)}" if added else draft.text
    return replace(plain, text=text, usage=draft.usage, is_composed=True, findings=draft.findings)


def cut(draft: Draft, reason: str) -> Draft:
    """The draft shortened to what one message can carry: the shortest outputs; the log still has every one."""
    text = f"{draft.text[:CUT_CHARACTERS]}\n\n… cut here, see the results of the tasks: {reason}"
    kept: dict[str, Output] = {}
    room = CUT_CHARACTERS
    for task_id in sorted(draft.outputs, key=lambda task_id: len(as_text(draft.outputs[task_id]))):
        room -= len(as_text(draft.outputs[task_id]))
        if room < 0:
            break
        kept[task_id] = draft.outputs[task_id]
    left_out = (*draft.left_out, *(task_id for task_id in draft.outputs if task_id not in kept))
    return replace(draft, text=text, outputs=kept, is_cut=True, is_fitted=False, left_out=left_out)


def _sections(state: RequestState, outputs: Mapping[str, Output]) -> str:
    names = {task_id: state.tasks[task_id].spec.name for task_id in outputs}
    return "\n\n".join(f"## {names[task_id]}\n\n{as_text(output)}" for task_id, output in outputs.items())


def _by_rule(state: RequestState) -> Selected | None:
    """The choice without a judge."""
    found = list(candidates(state))
    if state.plan_entry is None or state.plan_entry.plan.aggregation != "select" or not found:
        return None
    of = f"the first of {len(found)} final tasks that are done, in the order of the plan; nobody judged them"
    return Selected(task_id=found[0], reason=of if len(found) > 1 else "the only final task that is done")


def _missing(state: RequestState) -> str:
    """What is missing beside the one output that is left: nothing else in the text would tell."""
    found = gaps(state)
    listed = "\n".join(f"- {gap}" for gap in found[:MAX_MISSING])
    more = f"\n- … and {len(found) - MAX_MISSING} more" if len(found) > MAX_MISSING else ""
    return f"\n\n## Missing\n\n{listed}{more}" if found else ""


def _word(task: TaskState) -> str:
    """How a task that is not done stands, in words for people."""
    return {
        TaskPhase.FAILED: "failed",
        TaskPhase.SKIPPED: "was skipped",
        TaskPhase.RESERVED: "was still running",
    }.get(task.phase, "was to be tried again" if task.attempts else "was not started")


def _nothing(state: RequestState, reason: str) -> str:
    """The text when no task finished: why the request ended, and the first task that failed."""
    failed = next((task for task in state.tasks.values() if task.phase is TaskPhase.FAILED), None)
    tries = counted(len(failed.attempts), "attempt") if failed else ""
    because = f"{failed.spec.name} failed after {tries}: {failed.reason}" if failed else ""
    return "No task finished. " + "; ".join(part for part in (reason, because) if part)
