"""An answer with a model: what the model is asked, and when it is not asked."""

import pytest

from muster_agent.errors import BadOutput
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import ComposeBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_protocol.messages import Output, Usage
from muster_supervisor.composing.compose import CHUNK_CHARACTERS, compose
from muster_supervisor.composing.merge import merge
from tests.unit.protocol.log_builder import failure, result, task
from tests.unit.supervisor.finished import finished, planned

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


async def test_outputs_that_condensing_does_not_shorten_are_combined_as_they_are():
    state = finished({name: name * (CHUNK_CHARACTERS + 1) for name in "ab"}, "reduce")
    model = Scripted(lambda _: Reply("x" * CHUNK_CHARACTERS, usage=COST))

    await compose(state, model, "")

    assert len(model.asked) == 3


async def test_a_reply_that_was_cut_off_is_an_error():
    with pytest.raises(BadOutput):
        await compose(finished({"a": "one", "b": "two"}), Scripted([Reply("half a sen", stop="length")]), "")
