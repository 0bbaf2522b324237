"""An answer without a model: what it is made of, and which gaps it names."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.fold.growth import replaced
from muster_protocol.messages import PlanRecorded
from muster_protocol.plan import Aggregation
from muster_protocol.status_words import TaskStatus
from muster_supervisor.composing.merge import completed, cut, gaps, merge, parts
from tests.guards import guards
from tests.unit.protocol.arbitrary import logs
from tests.unit.protocol.log_builder import REQUEST, failure, reserved, result, revision, task
from tests.unit.supervisor.finished import finished, planned


@guards(
    "services/supervisor/muster_supervisor/composing/merge.py",
    "used.add(needed)",
    rule="I4",
)
def test_the_answer_is_made_of_the_final_tasks_and_of_all_that_was_done_for_one_that_is_missing():
    log = planned(task("a"), task("b", "a"), task("x"), task("c", "x"), task("d", "c", max_attempts=1))
    log.run(result("a"), result("b"), result("x"), result("c"), failure("d"))

    assert list(parts(log.state)) == ["b", "x", "c"]


def test_what_was_done_before_a_task_that_is_missing_stands_under_its_own_id():
    log = planned(task("a"), task("b", "a", max_attempts=1))
    log.run(result("a"), failure("b"))

    draft = merge(log.state, "")

    assert (draft.output, draft.text) == ({"a": "found"}, "## a\n\nfound\n\n## Missing\n\n- b failed: boom")


def test_what_was_done_while_a_model_composed_is_added():
    log = planned(task("a"), task("b"))
    log.run(result("a"))
    draft = replace(merge(log.state, ""), text="composed", is_composed=True)
    log.run(result("b"))

    whole = completed(draft, log.state, "")

    assert whole.output == {"a": "found", "b": "found"}
    assert whole.text == "composed\n\n## b\n\nfound"


def test_of_outputs_that_are_too_long_for_one_answer_the_short_ones_stay():
    draft = cut(merge(finished({"a": "x" * 100_000, "b": "short", "c": "small"}), ""), "too large")

    assert draft.output == {"b": "short", "c": "small"}
    assert draft.left_out == ("a",)


@given(logs(), st.integers(0, 40), st.sampled_from(["merge", "reduce"]), st.booleans())
@settings(max_examples=60)
def test_i4_the_table_and_the_output_of_an_answer_agree_whatever_the_log_and_whenever_it_was_composed(
    entries: list[Entry], composed_at: int, aggregation: Aggregation, is_composed: bool
):
    entries = [_with_aggregation(entry, aggregation) for entry in entries]
    grown_at = max((place for place, entry in enumerate(entries, 1) if entry.body.kind == "extended"), default=0)
    early = merge(fold(REQUEST, entries[: max(composed_at, grown_at)]), "")  # nobody lets a plan grow while composing
    state = fold(REQUEST, entries)

    draft = completed(replace(early, is_composed=is_composed), state, "")

    done = {row.id for row in state.outcomes() if row.status is TaskStatus.DONE and not state.tasks[row.id].unfolded}
    ends = {name for name, found in state.tasks.items() if not _readers(state, name) and not found.unfolded}
    if len(ends - replaced(state)) == 1 and ends - replaced(state) <= done:
        assert draft.output == state.tasks[(ends - replaced(state)).pop()].output
        return
    shown = draft.outputs
    assert draft.output == (shown or None)
    assert shown.keys() <= done
    for task_id in done - shown.keys():  # then a final task was made of it
        assert _leads_to(state, task_id) & ends & done
    for task_id in shown:
        assert shown[task_id] == state.tasks[task_id].output
        assert is_composed or f"## {task_id}\n" in draft.text


def _with_aggregation(entry: Entry, aggregation: Aggregation) -> Entry:
    if not isinstance(entry.body, PlanRecorded):
        return entry
    plan = entry.body.plan.model_copy(update={"aggregation": aggregation})
    return entry._replace(body=entry.body.model_copy(update={"plan": plan}))


def _readers(state: RequestState, task_id: str) -> list[str]:
    """Who says what a task said; what a review adds comes beside it, unless the same review asked for both."""
    task = state.tasks[task_id]
    readers = [(name, state.tasks[name].grown_by) for name in task.dependents]
    return [name for name, cause in readers if not cause.startswith("review") or cause == task.grown_by]


def _leads_to(state: RequestState, task_id: str) -> set[str]:
    items = [name for name, found in state.tasks.items() if found.spec.item_of == task_id]
    dependents = [*_readers(state, task_id), *items]
    return set(dependents).union(*(_leads_to(state, dependent) for dependent in dependents))


def test_a_single_result_is_the_answer_unchanged():
    draft = merge(finished({"a": {"sum": 3}}), "")

    assert (draft.text, draft.output) == ('{\n  "sum": 3\n}', {"sum": 3})


def test_several_results_stand_one_after_the_other_under_the_ids_of_their_tasks():
    draft = merge(finished({"a": "one", "b": "two"}), "")

    assert draft.text == "## a\n\none\n\n## b\n\ntwo"
    assert draft.output == {"a": "one", "b": "two"}
    assert draft.made_of == {"a", "b"}


def test_tasks_are_called_by_what_they_are():
    log = planned(*(task(name, max_attempts=1).model_copy(update={"label": name.upper()}) for name in "ab"))
    log.run(result("a"), failure("b"))

    draft = merge(log.state, "")

    assert (draft.text, draft.output) == ("## A\n\nfound\n\n## Missing\n\n- B failed: boom", {"a": "found"})
    assert gaps(log.state) == ("B failed: boom",)
    assert [row.label for row in log.state.outcomes()] == ["A", "B"]


def test_select_takes_the_first_finished_task_in_the_order_of_the_plan():
    log = planned(task("a", max_attempts=1), task("b"), task("c"), aggregation="select")
    log.run(failure("a"), result("c"), result("b"))

    draft = merge(log.state, "")

    assert (draft.made_of, draft.selected and draft.selected.task_id) == ({"b"}, "b")
    assert draft.selected is not None
    assert "the first of 2 final tasks" in draft.selected.reason


def test_without_any_result_the_text_names_the_reason():
    log = planned(task("a", max_attempts=1), task("b", "a"))
    log.run(failure("a", message="no such page"))

    draft = merge(log.state, "the deadline was reached")

    assert draft.text == "No task finished. the deadline was reached; a failed after 1 attempt: no such page"
    assert draft.output is None


def test_every_task_that_is_not_done_is_a_gap_with_its_reason():
    names = ("failed", "running", "retried", "delayed", "done")
    log = planned(*map(task, names), task("skipped", "failed"), task("waiting", "running"))
    log.run(failure("failed", is_final=True), failure("retried"), failure("delayed"), result("done"))
    log.own(revision("delayed", 2))
    log.own(reserved(("running", 1)))

    assert gaps(log.state) == (
        "failed failed: boom",
        "running was still running",
        "retried was to be tried again: boom",
        "delayed was to be tried again: boom",
        "skipped was skipped: failed failed: boom",
        "waiting was not started",
    )
