"""An answer without a model: what it is made of, and which gaps it names."""

from muster_supervisor.composing.merge import final_tasks, gaps, merge
from tests.unit.protocol.log_builder import failure, reserved, result, revision, task
from tests.unit.supervisor.finished import finished, planned


def test_the_answer_is_made_of_the_results_that_no_other_task_used():
    log = planned(task("a"), task("b", "a"), task("c"), task("d", "c", max_attempts=1))
    log.run(result("a"), result("b"), result("c"), failure("d"))

    assert list(final_tasks(log.state)) == ["b", "c"]


def test_a_single_result_is_the_answer_unchanged():
    draft = merge(finished({"a": {"sum": 3}}), "")

    assert (draft.text, draft.output) == ('{\n  "sum": 3\n}', {"sum": 3})


def test_several_results_stand_one_after_the_other_under_the_ids_of_their_tasks():
    draft = merge(finished({"a": "one", "b": "two"}), "")

    assert draft.text == "## a\n\none\n\n## b\n\ntwo"
    assert draft.output == {"a": "one", "b": "two"}
    assert draft.made_of == {"a", "b"}


def test_select_takes_the_first_finished_task_in_the_order_of_the_plan():
    log = planned(task("a", max_attempts=1), task("b"), task("c"), aggregation="select")
    log.run(failure("a"), result("c"), result("b"))

    assert merge(log.state, "").made_of == {"b"}


def test_without_any_result_the_text_names_the_reason():
    log = planned(task("a", max_attempts=1), task("b", "a"))
    log.run(failure("a", message="no such page"))

    draft = merge(log.state, "the deadline was reached")

    assert draft.text == "No task finished. the deadline was reached; a failed after 1 attempts: no such page"
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
