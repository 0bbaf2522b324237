"""From results to a text: what goes in, what is named as missing, and what a model is asked."""

import pytest

from muster_agent.errors import BadOutput
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import ComposeBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_protocol.fold import RequestState
from muster_protocol.messages import Output, Usage
from muster_protocol.plan import Aggregation, TaskSpec
from muster_supervisor.composing.compose import CHUNK_CHARACTERS, compose, final_tasks, gaps, merge
from tests.unit.protocol.log_builder import Journal, failure, plan_entry, plan_of, reserved, result, revision, task

COST = Usage(input_tokens=10, output_tokens=5, model_calls=1)


def planned(*tasks: TaskSpec, aggregation: Aggregation = "merge") -> Journal:
    journal = Journal()
    journal.take()
    plan = plan_of(*tasks).model_copy(update={"aggregation": aggregation, "final_instruction": "be brief"})
    journal.own(plan_entry(plan))
    return journal


def finished(outputs: dict[str, Output], aggregation: Aggregation = "merge") -> RequestState:
    journal = planned(*map(task, outputs), aggregation=aggregation)
    for task_id, output in outputs.items():
        journal.run(result(task_id).model_copy(update={"output": output}))
    return journal.state


def test_the_answer_is_made_of_the_results_that_no_other_result_has_taken_in():
    journal = planned(task("a"), task("b", "a"), task("c"), task("d", "c", max_attempts=1))
    journal.run(result("a"), result("b"), result("c"), failure("d"))

    assert list(final_tasks(journal.state)) == ["b", "c"]


def test_one_result_is_the_answer_as_it_is():
    draft = merge(finished({"a": {"sum": 3}}), "")

    assert (draft.text, draft.output) == ('{\n  "sum": 3\n}', {"sum": 3})


def test_several_results_follow_each_other_under_their_names():
    draft = merge(finished({"a": "one", "b": "two"}), "")

    assert draft.text == "## a\n\none\n\n## b\n\ntwo"
    assert draft.output == {"a": "one", "b": "two"}
    assert draft.made_of == {"a", "b"}


def test_select_takes_the_first_that_finished_in_the_order_of_the_plan():
    journal = planned(task("a", max_attempts=1), task("b"), task("c"), aggregation="select")
    journal.run(failure("a"), result("c"), result("b"))

    assert merge(journal.state, "").made_of == {"b"}


def test_without_any_result_the_text_says_why():
    journal = planned(task("a", max_attempts=1), task("b", "a"))
    journal.run(failure("a", message="no such page"))

    draft = merge(journal.state, "the deadline was reached")

    assert draft.text == "No task finished. the deadline was reached; a failed after 1 attempts: no such page"
    assert draft.output is None


def test_every_gap_is_named_with_its_reason():
    names = ("failed", "running", "struck", "delayed", "done")
    journal = planned(*map(task, names), task("skipped", "failed"), task("waiting", "running"))
    journal.run(failure("failed", is_final=True), failure("struck"), failure("delayed"), result("done"))
    journal.own(revision("delayed", 2))
    journal.own(reserved(("running", 1)))

    assert gaps(journal.state) == (
        "failed failed: boom",
        "running was still running",
        "struck was to be tried again: boom",
        "delayed was to be tried again: boom",
        "skipped was skipped: failed failed: boom",
        "waiting was not started",
    )


async def test_a_model_unites_several_results_and_sees_the_gaps():
    model = Scripted([Reply("united", usage=COST)])
    journal = planned(task("a"), task("b"), task("c", max_attempts=1))
    journal.run(result("a"), result("b"), failure("c"))

    draft = await compose(journal.state, model, "")

    assert (draft.text, draft.usage) == ("united", COST)
    brief = ComposeBrief("a goal", {"a": "found", "b": "found"}, "be brief", ("c failed: boom",))
    assert [ask.brief for ask in model.asked] == [brief]


@pytest.mark.parametrize("outputs", [{"a": "alone"}, {}])
async def test_a_model_is_not_asked_when_there_is_nothing_to_unite(outputs: dict[str, Output]):
    model = Scripted([])
    state = finished(outputs) if outputs else planned(task("a")).state

    assert await compose(state, model, "because") == merge(state, "because")


async def test_the_offline_model_is_never_asked_to_write():
    state = finished({"a": "one", "b": "two"})

    assert await compose(state, Offline(), "") == merge(state, "")


async def test_reduce_condenses_what_is_too_long_before_it_is_united():
    state = finished({name: name * (CHUNK_CHARACTERS // 2 - 1) for name in "abcd"}, "reduce")
    model = Scripted([Reply("ab", usage=COST), Reply("cd", usage=COST), Reply("abcd", usage=COST)])

    draft = await compose(state, model, "")

    assert draft.text == "abcd"
    assert draft.usage == COST + COST + COST
    last = model.asked[-1].brief
    assert isinstance(last, ComposeBrief)
    assert last.outputs == {"part-1": "ab", "part-2": "cd"}


async def test_what_cannot_be_condensed_further_is_united_as_it_is():
    state = finished({name: name * (CHUNK_CHARACTERS + 1) for name in "ab"}, "reduce")
    model = Scripted(lambda _: Reply("x" * CHUNK_CHARACTERS, usage=COST))

    await compose(state, model, "")

    assert len(model.asked) == 3


async def test_a_text_that_was_cut_off_is_an_error_and_not_an_answer():
    with pytest.raises(BadOutput):
        await compose(finished({"a": "one", "b": "two"}), Scripted([Reply("half a sen", stop="length")]), "")
