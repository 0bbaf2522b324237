"""An answer with a model: what the model is asked, and when it is not asked."""

from typing import Any

import pytest

from muster_agent.errors import BadOutput
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import ComposeBrief, JudgeBrief, ReduceBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_protocol.fold import RequestState
from muster_protocol.messages import AnswerStatus, Output, Selected, Usage
from muster_supervisor.composing.compose import CHUNK_CHARACTERS, CHUNK_OUTPUTS, compose
from muster_supervisor.composing.final import Circumstances, final_answer
from muster_supervisor.composing.fit import fitted
from muster_supervisor.composing.merge import merge
from muster_supervisor.decide import GiveAnswer
from tests.unit.protocol.log_builder import failure, result, task
from tests.unit.supervisor.finished import finished, planned

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
COST = Usage(input_tokens=10, output_tokens=5, model_calls=1)


async def test_a_model_combines_several_results_and_sees_the_gaps():
    model = Scripted([Reply("combined", usage=COST)])
    log = planned(task("a"), task("b"), task("c", max_attempts=1))
    log.run(result("a"), result("b"), failure("c"))

    draft = await compose(log.state, model, "")

    assert (draft.text, draft.usage) == ("combined", COST)
    brief = ComposeBrief(
        "a goal",
        {"a": "found", "b": "found"},
        "be brief",
        ("c failed: boom",),
        asked={"a": "done by work: do a", "b": "done by work: do b"},
    )
    assert [ask.brief for ask in model.asked] == [brief]


@pytest.mark.parametrize("outputs", [{"a": "alone"}, {}])
async def test_a_model_is_not_asked_about_fewer_than_two_results(outputs: dict[str, Output]):
    model = Scripted([])
    state = finished(outputs) if outputs else planned(task("a")).state

    assert await compose(state, model, "because") == merge(state, "because")


async def test_the_offline_model_is_never_asked_to_compose():
    state = finished({"a": "one", "b": "two"})

    assert await compose(state, Offline(), "") == merge(state, "")


async def test_reduce_condenses_outputs_that_are_too_long_for_one_call():
    state = finished({name: name * (CHUNK_CHARACTERS // 2 - 1) for name in "abcd"}, "reduce")
    model = Scripted([Reply("ab", usage=COST), Reply("cd", usage=COST), Reply("abcd", usage=COST)])

    draft = await compose(state, model, "")

    assert draft.text == "abcd"
    assert draft.usage == COST + COST + COST
    last = model.asked[-1].brief
    assert isinstance(last, ComposeBrief)
    assert last.outputs == {"part-1": "ab", "part-2": "cd"}
    assert [type(ask.brief) for ask in model.asked[:-1]] == [ReduceBrief, ReduceBrief]


async def test_outputs_that_condensing_does_not_shorten_are_combined_as_they_are():
    state = finished({name: name * (CHUNK_CHARACTERS + 1) for name in "ab"}, "reduce")
    model = Scripted(lambda _: Reply("x" * CHUNK_CHARACTERS, usage=COST))

    await compose(state, model, "")

    assert len(model.asked) == 5  # each in two pieces, then all at once


async def test_a_reply_that_was_cut_off_is_an_error():
    with pytest.raises(BadOutput):
        await compose(finished({"a": "one", "b": "two"}), Scripted([Reply("half a sen", stop="length")]), "")


async def test_many_small_outputs_are_condensed_in_groups():
    state = finished({f"t{n}": "short" for n in range(CHUNK_OUTPUTS * 2)}, "reduce")
    model = Scripted(lambda _: Reply("x", usage=COST))

    await compose(state, model, "")

    assert [len(ask.brief.outputs) for ask in model.asked if isinstance(ask.brief, ReduceBrief)] == [CHUNK_OUTPUTS] * 2


async def test_the_one_output_that_is_left_of_several_is_composed_with_its_gaps():
    model = Scripted([Reply("a is found, b is missing", usage=COST)])
    log = planned(task("a"), task("b", max_attempts=1))
    log.run(result("a"), failure("b"))

    assert (await compose(log.state, model, "")).text == "a is found, b is missing"
    brief = model.asked[0].brief
    assert isinstance(brief, ComposeBrief)
    assert brief.gaps == ("b failed: boom",)


async def test_a_judge_picks_the_best_output_and_says_why():
    model = Scripted([Reply('{"best": "b", "reason": "it has figures"}', usage=COST)])

    draft = await compose(finished({"a": "one", "b": "two"}, "select"), model, "")

    assert (draft.text, draft.output, draft.usage) == ("two", "two", COST)
    assert draft.selected == Selected(task_id="b", reason="scripted judged: it has figures")
    assert isinstance(model.asked[0].brief, JudgeBrief)


@pytest.mark.parametrize("reply", ['{"best": "c", "reason": "?"}', "b"])
async def test_a_judge_that_picks_nothing_is_an_error(reply: str):
    with pytest.raises(BadOutput, match="picked none of a, b"):
        await compose(finished({"a": "one", "b": "two"}, "select"), Scripted([Reply(reply)]), "")


async def test_a_judge_is_not_asked_about_one_output():
    log = planned(task("a"), task("b", max_attempts=1), aggregation="select")
    log.run(result("a"), failure("b"))

    draft = await compose(log.state, Scripted([]), "")

    assert draft.selected == Selected(task_id="a", reason="the only final task that is done")


async def test_an_answer_that_does_not_fit_its_schema_goes_back_once_with_what_is_wrong():
    state = with_schema(finished({"a": "one", "b": "two"}))
    model = Scripted([Reply('{"price": "ten"}', usage=COST), Reply('```json\n{"price": 10}\n```', usage=COST)])

    draft = fitted(await compose(state, model, ""), SCHEMA)

    assert (draft.output, draft.misfits, draft.usage) == ({"price": 10}, (), COST + COST)
    again = model.asked[1].brief
    assert isinstance(again, ComposeBrief)
    assert (again.draft, again.mistakes) == ('{"price": "ten"}', ("price: 'ten' is not of type 'number'",))


async def test_an_answer_that_still_does_not_fit_is_partial_and_names_the_paths():
    state = with_schema(finished({"a": "one", "b": "two"}))
    draft = fitted(await compose(state, Scripted([Reply("{}"), Reply("no JSON")]), ""), SCHEMA)

    answer = final_answer(state, GiveAnswer(AnswerStatus.DONE, ""), draft, Circumstances(1.0, "", ""))

    assert (answer.status, answer.error_class) == (AnswerStatus.PARTIAL, "bad_output")
    assert answer.gaps[0].startswith("the answer does not fit answer_schema: it is not JSON")
    assert answer.output == {"a": "one", "b": "two"}


@pytest.mark.parametrize(
    ("outputs", "value", "misfits"),
    [
        ({"a": {"price": 3}}, {"price": 3}, ()),
        ({"a": '{"price": 3}'}, {"price": 3}, ()),
        ({"a": {"price": "3"}}, {"price": "3"}, ("price: '3' is not of type 'number'",)),
        ({"a": 1, "price": 2}, {"a": 1, "price": 2}, ()),
    ],
)
def test_without_a_model_the_output_is_taken_if_it_fits(
    outputs: dict[str, Output], value: Output, misfits: tuple[str, ...]
):
    draft = fitted(merge(finished(outputs), ""), SCHEMA)

    assert (draft.output, draft.misfits) == (value, misfits)


def with_schema(state: RequestState) -> RequestState:
    assert state.plan_entry is not None
    state.plan_entry = state.plan_entry.model_copy(update={"answer_schema": SCHEMA})
    return state
