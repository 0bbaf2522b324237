"""What is read of a model's word about a plan that may grow, and what it is told is wrong with it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.errors import BadOutput, OutOfBudget
from muster_agent.models.offline.model import Offline
from muster_agent.models.port import Price, Reply
from muster_agent.models.scripted import Scripted
from muster_agent.team.schema import FunctionRole, Team
from muster_protocol.fold import RequestState, fault_of, pending_growth
from muster_protocol.fold.budget import UNLIMITED, Left
from muster_protocol.fold.growth import growth_notes
from muster_protocol.messages import Extended, PlanRecorded, Result
from muster_protocol.messages.growth import GrowthLimits
from muster_protocol.plan import TaskSpec
from muster_supervisor.decide import status_of
from muster_supervisor.planning.asking import Read, verdict_of
from muster_supervisor.planning.briefing import NOTHING_SEEN
from muster_supervisor.planning.standing import MAX_SHOWN, replace_brief, review_brief, skipped_for
from muster_supervisor.planning.verdict import read_verdict
from tests.unit.protocol.log_builder import LogBuilder, failure, plan_entry, plan_of, result, task

TEAM = Team(
    team="default",
    roles=(
        FunctionRole(name="work", description="does things", run="roles:work"),
        FunctionRole(name="backup", description="does t0 t1 t2 t3 t4 t5", tags=("work",), run="roles:work"),
    ),
)
LIMITS = GrowthLimits(tasks=12, rounds=2, replacements=2)


def growing(*specs: TaskSpec, limits: GrowthLimits = LIMITS) -> LogBuilder:
    log = LogBuilder()
    log.take()
    entry: PlanRecorded = plan_entry(plan_of(*specs))
    log.own(entry.model_copy(update={"growth": limits, "text": "What does it cost?"}))
    return log


def reviewed(*done: str) -> LogBuilder:
    log = growing(*(task(name) for name in done))
    log.run(*(result(name) for name in done))
    return log


def failed() -> LogBuilder:
    """T1 has failed for good and T3 was skipped for it, T2 is done."""
    log = growing(task("t1"), task("t2"), task("t3", "t1", "t2"))
    log.run(result("t2"), failure("t1", is_final=True))
    return log


def new(task_id: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "description": f"find out about {task_id}", "tag": "work", "dependencies": needs, **more}


def said(word: str, *tasks: dict[str, Any], drop: tuple[str, ...] = ()) -> str:
    return json.dumps({"verdict": word, "reason": "because", "tasks": tasks, "drop": drop})


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (said("finish"), ""),
        (said("more", new("b", "a")), ""),
        (f"```json\n{said('finish')}\n```", ""),
        ("I think that is enough.", "the reply is not JSON"),
        (said("keep"), "verdict: say finish or more, not 'keep'"),
        (said("finish", new("b")), "verdict: finish has no tasks; leave them out, or say more"),
        (said("more"), "tasks: more names at least one task"),
        (said("more", new("a")), "tasks.a.id: there is a task of this id"),
        (said("more", new("b", "c")), "tasks.b.dependencies: no task has the id 'c'"),
        (said("more", new("b", tag="nobody")), "tasks.b.tag: nobody has the tag 'nobody'"),
        (said("more", new("b", description="Do  A")), "tasks.b.description: a has done the same"),
        (said("more", *(new(f"b{n}") for n in range(12))), "12 tasks more would make 13; the request may have 12"),
        (said("more", *(new(f"b{n}") for n in range(21))), "tasks: at most 20 tasks at once; these are 21"),
        (said("more", new("b"), drop=("a",)), "only for a failure may tasks be dropped"),
        (said("more", new("b", "c"), new("c", "b")), "tasks wait for each other"),
    ],
)
def test_a_review_adds_what_can_be_done_and_is_new(text: str, mistake: str):
    found = read_verdict(text, reviewed("a").state, "review:1", TEAM)

    assert bool(found.mistakes) == bool(mistake)
    assert mistake in "; ".join(found.mistakes)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (said("keep"), ""),
        (said("replace", new("t4"), new("t5", "t4", "t2"), drop=("t3",)), ""),
        (said("replace", new("t4", "t1")), "t1 is failed and gives nothing; this would never begin"),
        (said("replace", new("t4", "t3")), "t3 is skipped and gives nothing"),
        (said("replace", new("t4", description="do t1")), "t1 was the same for the same worker, and failed"),
        (said("replace", new("t4", description="do t1", tag="backup")), ""),
        (said("replace", new("t4"), drop=("t2",)), "t2 cannot be dropped: it has begun or ended"),
        (said("replace", new("t4"), drop=("t9",)), "no task has the id 't9'"),
    ],
)
def test_a_replacement_builds_on_what_there_is(text: str, mistake: str):
    found = read_verdict(text, failed().state, "failure:t1", TEAM)

    assert bool(found.mistakes) == bool(mistake)
    assert mistake in "; ".join(found.mistakes)


def test_a_map_of_the_plan_is_named_as_a_whole():
    items = tuple(task(f"read-{n}").model_copy(update={"item_of": "read"}) for n in (1, 2))
    log = growing(*items)
    log.run(result("read-1"), result("read-2"))

    found = read_verdict(said("more", new("sum", "read", gather="done")), log.state, "review:1", TEAM)

    assert [spec.dependencies for spec in found.add] == [("read-1", "read-2")]


def asked(log: LogBuilder, *replies: str, left: Left = UNLIMITED) -> tuple[Scripted, Any]:
    state = log.state
    (cause,) = pending_growth(state)
    brief = review_brief(state, TEAM, NOTHING_SEEN, ()) if not state.growing[cause] else None
    brief = brief or replace_brief(state, TEAM, NOTHING_SEEN, state.growing[cause])
    model = Scripted([Reply(text=reply) for reply in replies], price=Price(input=1, output=1))
    return model, asyncio.run(verdict_of(brief, model, left, lambda text: read_verdict(text, state, cause, TEAM)))


def test_a_reply_with_mistakes_goes_back_once_with_all_of_them():
    model, verdict = asked(reviewed("a"), said("more", new("a", "x")), said("more", new("b", "a")))

    brief: Any = model.asked[1].brief
    assert [spec.id for spec in verdict.add] == ["b"]
    assert [mistake.partition(":")[0] for mistake in brief.mistakes] == ["tasks.a.id", "tasks.a.dependencies"]
    with pytest.raises(BadOutput, match="scripted said nothing that can be used: tasks: more names"):
        asked(reviewed("a"), said("more"), said("more"))


@pytest.mark.parametrize("left", [Left(1_500, None), Left(None, 0.001)])
def test_nobody_is_asked_where_what_is_left_pays_for_nothing_that_comes_of_it(left: Left):
    with pytest.raises(OutOfBudget, match=r"are left, and a look at the results needs about"):
        asked(reviewed("a"), left=left)


def test_of_many_tasks_those_are_shown_that_say_most():
    log = growing(*(task(f"t{n}") for n in range(MAX_SHOWN + 100)), task("end", "t250"))
    log.run(*(result(f"t{n}") for n in range(250)), failure("t250", is_final=True))
    standing = replace_brief(log.state, TEAM, NOTHING_SEEN, "t250").standing

    shown = {found.spec.id for found in standing.tasks}
    assert (len(shown), {"t250", "end"} <= shown) == (MAX_SHOWN, True)
    assert standing.not_shown == "101 tasks not shown: 52 done, 49 ready."


def test_a_failure_whose_place_others_took_is_no_gap():
    log = failed()
    verdict = read_verdict(
        said("replace", new("t4"), new("t5", "t4", "t2"), drop=("t3",)), log.state, "failure:t1", TEAM
    )
    log.own(Extended(cause="failure:t1", add=verdict.add, drop=verdict.drop, reason=verdict.reason))
    log.run(result("t4"), result("t5"))
    log.own(Extended(cause="review:1", reason="enough"))

    assert status_of(log.state).value == "done"
    assert growth_notes(log.state) == ("t4, t5 took the place of t1, t3: because",)


SHAPES = st.lists(st.tuples(st.sets(st.integers(0, 5), max_size=2), st.booleans()), min_size=1, max_size=6)


@given(SHAPES, st.integers(0, 3))
def test_what_rules_say_of_a_failure_or_a_round_is_always_allowed(
    drawn: list[tuple[set[int], bool]], open_questions: int
):
    specs = [
        task(f"t{n}", *sorted(f"t{need}" for need in needs if need < n)).model_copy(update={"tag": "work"})
        for n, (needs, _) in enumerate(drawn)
    ]
    fails = {spec.id for spec, (_, is_done) in zip(specs, drawn, strict=True) if not is_done}
    log = growing(*specs)
    while _grow_by_rules(log) or log.state.ready:
        for name in log.state.ready:
            log.run(failure(name, is_final=True) if name in fails else _ending(name, open_questions))

    assert log.state.open_tasks == 0
    assert len({spec.cause for spec in log.state.grown}) == len(log.state.grown)


def _ending(name: str, count: int) -> Result:
    """A success that leaves so many questions open."""
    text = "\n".join(f"Open question: {name}, what of {n}?" for n in range(count)) if name.startswith("t") else "done"
    return result(name).model_copy(update={"output": text})


def _grow_by_rules(log: LogBuilder) -> bool:
    """Record what rules say for each cause; False: there was none."""
    causes = pending_growth(log.state)
    for cause in causes:
        state = log.state
        name = state.growing[cause]
        brief = replace_brief(state, TEAM, NOTHING_SEEN, name) if name else review_brief(state, TEAM, NOTHING_SEEN, ())
        verdict = asyncio.run(
            verdict_of(brief, Offline(), UNLIMITED, _reader(state, cause)),
        )
        extended = Extended(cause=cause, add=verdict.add, drop=verdict.drop, reason=verdict.reason)
        assert fault_of(state, extended) is None
        assert set(verdict.drop) <= set(skipped_for(state, name) if name else ())
        log.own(extended)
        assert cause not in log.state.growing
    return bool(causes)


def _reader(state: RequestState, cause: str) -> Read:
    return lambda text: read_verdict(text, state, cause, TEAM)
