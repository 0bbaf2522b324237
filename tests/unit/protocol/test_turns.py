"""The fold of a task's turns: who may add to the conversation, what is gone on with, and what was spent."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Claim, Effect, ModelTurn, Result, ResultStatus, ToolOutputs, TurnBody, Usage
from muster_protocol.messages.turns import CallAsked, StoredOutput, StoredReply
from muster_protocol.turns.fold import NOTHING, TaskTurns, TurnAt, apply_turn, fold_turns
from tests.guards import guards
from tests.unit.protocol.log_builder import planned, task

FOLD = "libs/protocol/muster_protocol/turns/fold.py"
CALL = StoredReply(tool_calls=(CallAsked(id="c", name="add"),), stop="tools")


def claim(attempt: int = 1, delivery: int = 1, *, asking: int = 0, fits: str = "x", resumes: bool = False) -> Claim:
    return Claim(
        task_id="t",
        attempt=attempt,
        worker=f"w{delivery}",
        delivery=delivery,
        task_sequence=attempt,
        fits=fits,
        resumes=resumes,
        asking=Usage(output_tokens=asking),
    )


def turn(by: int, tokens: int = 10, reply: StoredReply | None = CALL) -> ModelTurn:
    return ModelTurn(task_id="t", claim=by, reply=reply, usage=Usage(output_tokens=tokens))


def outputs(by: int, asking: int = 0) -> ToolOutputs:
    done = StoredOutput(call_id="c", text="2")
    return ToolOutputs(task_id="t", claim=by, outputs=(done,), asking=Usage(output_tokens=asking))


def effect(by: int, key: str, text: str | None = None) -> Effect:
    outcome = None if text is None else StoredOutput(call_id="c", text=text)
    return Effect(task_id="t", claim=by, key=key, tool="buy", outcome=outcome)


def stored(*bodies: TurnBody) -> TaskTurns:
    """As they are stored one after the other: the first has the sequence 1."""
    return fold_turns([TurnAt(number, body) for number, body in enumerate(bodies, 1)])


def test_the_next_delivery_goes_on_after_the_last_turn():
    turns = stored(claim(), turn(1), outputs(1), turn(1), claim(delivery=2))

    assert [step.outputs is not None for step in turns.steps] == [True, False]
    assert turns.spent == turns.spent_by(1) == Usage(output_tokens=20)


def test_a_further_attempt_goes_on_only_if_it_resumes_and_asks_the_same():
    before = (claim(), turn(1), outputs(1))

    assert len(stored(*before, claim(2, resumes=True)).steps) == 1
    assert stored(*before, claim(2)).steps == []
    assert stored(*before, claim(2, resumes=True, fits="y")).steps == []


@guards(FOLD, "    if body.claim != turns.claim_sequence:\n        return", rule="I9", replace="")
def test_a_turn_under_a_former_claim_is_paid_and_no_part_of_the_conversation():
    turns = stored(claim(), claim(delivery=2), turn(1))

    assert (turns.steps, turns.spent) == ([], Usage(output_tokens=10))


@guards(FOLD, "self.charge(self.claim.attempt, self.asking)", rule="I9")
def test_a_call_of_which_nothing_is_stored_is_spent_by_the_attempt_that_was_about_to_make_it():
    lost = (claim(asking=500), turn(1), outputs(1, asking=700))

    assert stored(*lost).spent == Usage(output_tokens=710)
    assert stored(*lost, claim(2)).spent_by(1) == Usage(output_tokens=710)
    assert stored(*lost, turn(1, 5)).spent == Usage(output_tokens=15)
    assert stored(*lost, turn(1, 0, None)).spent == Usage(output_tokens=10)


def test_who_got_the_task_earlier_may_not_claim_it_back():
    turns = stored(claim(2, delivery=2))

    assert turns.is_overtaken(claim(1, delivery=9))
    assert turns.is_overtaken(claim(2, delivery=1))
    assert not turns.is_overtaken(claim(2, delivery=2))
    assert not turns.is_overtaken(claim(3))
    assert not stored().is_overtaken(claim())


def test_effects_outlive_a_conversation_that_begins_anew():
    turns = stored(claim(), turn(1), effect(1, "k", "done"), effect(1, "j"), effect(1, "k"), claim(2))

    assert turns.steps == []
    assert {key: outcome and outcome.text for key, outcome in turns.effects.items()} == {"k": "done", "j": None}


def test_takes_that_stored_a_reply_are_named():
    turns = stored(claim(), turn(1), claim(delivery=2), turn(3, 0, None), claim(2, delivery=3), turn(5))

    assert turns.productive_takes(1, 1) == {("w1", 1)}
    assert turns.productive_takes(2, 2) == {("w3", 3)}


@st.composite
def histories(draw: st.DrawFn) -> list[TurnAt]:
    """What workers store, each under some claim, also one that is not the last or never was."""
    found: list[TurnAt] = []
    claims = [0]
    for number in range(1, draw(st.integers(0, 25)) + 1):
        by, tokens = draw(st.sampled_from(claims)), draw(st.integers(0, 9))
        again = claim(draw(st.integers(1, 3)), draw(st.integers(1, 4)), asking=tokens, resumes=draw(st.booleans()))
        kinds = (again, turn(by, tokens), turn(by, 0, None), outputs(by, tokens), effect(by, "k"), effect(by, "k", "d"))
        body = draw(st.sampled_from(kinds))
        found.append(TurnAt(number, body))
        claims += [number, number] if isinstance(body, Claim) else []
    return found


def paid(history: Sequence[TurnAt]) -> int:
    known = {entry.sequence for entry in history if isinstance(entry.body, Claim)}
    turns = (entry.body for entry in history if isinstance(entry.body, ModelTurn))
    return sum(one.usage.tokens for one in turns if one.claim in known)


@given(histories())
def test_nothing_that_was_paid_is_forgotten_and_each_attempt_has_its_part(history: list[TurnAt]):
    turns = fold_turns(history)

    assert turns.spent.tokens >= paid(history)
    assert sum((turns.spent_by(attempt) for attempt in range(1, 4)), NOTHING) == turns.spent


@given(histories(), st.integers(0, 25))
def test_what_comes_again_changes_nothing(history: list[TurnAt], at: int):
    once, twice = fold_turns(history), fold_turns(history)
    for entry in history[:at]:
        apply_turn(twice, entry)

    assert once == twice


@given(histories())
def test_a_conversation_is_replies_with_outputs_of_which_only_the_last_may_lack_them(history: list[TurnAt]):
    steps = fold_turns(history).steps

    assert all(step.outputs is not None for step in steps[:-1])


@given(histories())
def test_what_is_stored_under_a_former_claim_leaves_the_conversation_as_it_is(history: list[TurnAt]):
    before, after = fold_turns(history), fold_turns(history)
    former = next((entry.sequence for entry in history if isinstance(entry.body, Claim)), 0)
    if former == before.claim_sequence:
        return
    for number, body in enumerate((turn(former), outputs(former, 3), turn(former, 0, None)), len(history) + 1):
        apply_turn(after, TurnAt(number, body))

    assert (after.steps, after.asking, after.claim) == (before.steps, before.asking, before.claim)


def of_task(attempt: int, spent: int, worker: str) -> Result:
    usage = Usage(output_tokens=spent)
    return Result(
        request_id="r",
        task_id="a",
        attempt=attempt,
        status=ResultStatus.CANCELLED,
        worker=worker,
        role="clerk",
        usage=usage,
        spent=usage,
    )


@guards("libs/protocol/muster_protocol/fold/results.py", "    task.spent = body.spent.at_least(task.spent)", rule="I9")
def test_results_that_count_the_same_turns_add_them_once_in_whatever_order():
    for spent in ((30, 50, 40), (50, 40, 30), (30, 40, 50)):
        log = planned(task("a"))
        for number, tokens in enumerate(spent):
            log.work(of_task(1, tokens, f"w{number}"))

        assert log.state.usage.output_tokens == 50
