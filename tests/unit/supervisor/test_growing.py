"""By what a plan grows, and which plans are refused because a task could never go over its list."""

from typing import Any

import pytest

from muster_agent.models.scripted import Scripted
from muster_agent.team.schema import FunctionRole, Team
from muster_protocol.errors import Invalid
from muster_protocol.messages import Budget, Decision, Extended, Request
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.planning.growing import grown
from muster_supervisor.planning.planner import make_plan
from muster_supervisor.planning.routing import route
from muster_supervisor.steps.replies import edited
from tests.guards import guards
from tests.unit.protocol.log_builder import order, planned, result, task
from tests.unit.protocol.test_growth import gave, growing, over
from tests.unit.supervisor.fake_broker import TEAM

ROUTING = "services/supervisor/muster_supervisor/planning/routing.py"
FIND: dict[str, Any] = {"id": "find", "description": "find all pages of the site", "tag": "work"}


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        ({"over": "find", "description": "sum up {item.url}", "tag": "work"}, ""),
        ({"over": "find", "description": "sum it up well", "tag": "work"}, "{item} stands nowhere"),
        ({"over": "find", "description": "sum up {itm}", "tag": "work"}, "nothing has the name {itm}"),
        ({"over": "found", "description": "sum up {item}", "tag": "work"}, "no task has the id 'found'"),
        ({"over": "each", "description": "sum up {item}", "tag": "work"}, "tasks wait for each other: each → each"),
        ({"over": "find", "description": "sum up {item}", "broadcast": True}, "goes over a list or is broadcast"),
        ({"over": "copies", "description": "sum up {item}", "tag": "work"}, "copies is broadcast and gives no list"),
    ],
)
async def test_a_task_that_could_never_go_over_its_list_is_refused(each: dict[str, Any], reason: str):
    copies = {"id": "copies", "description": "ask everybody for pages", "broadcast": True}
    request = Request.of({"plan": {"tasks": [FIND, copies, {"id": "each", **each}]}})

    if not reason:
        assert (await make_plan(request, TEAM, Scripted([]))).plan.tasks[-1].dependencies == ("find",)
        return
    with pytest.raises(Invalid) as refused:
        await make_plan(request, TEAM, Scripted([]))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("output", "refusal"),
    [
        ({"pages": 3}, "which is no list"),
        ([{"url": "a"}, "b"], ""),
        (None, "find gave 'null', which is no list"),
    ],
)
def test_anything_but_a_list_is_bad_output(output: object, refusal: str):
    log = growing(items=[])
    log.entries.pop()
    log.work(gave("find", output))

    found = grown(log.state, "over:each", TEAM)

    assert refusal in (found.refused.message if found.refused else "")
    assert (found.refused is None) == (not refusal)


def test_an_item_for_nobody_is_refused_before_it_is_recorded():
    log = growing(over("other", "find").model_copy(update={"tag": "nobody"}))

    found = grown(log.state, "over:other", TEAM)

    assert found.refused is not None
    assert "nobody has the tag 'nobody'" in found.refused.message


def spawned(role: str, *tasks: TaskSpec, spawns: bool = True) -> Extended:
    """What a team makes of these, which a task of that role asks for."""
    team = Team(
        team="default",
        roles=(
            FunctionRole(name="work", run="roles:work", spawns=spawns),
            FunctionRole(name="other", tags=("aside",), run="roles:other"),
            FunctionRole(name="third", tags=("aside",), run="roles:third"),
        ),
    )
    log = planned(task("root"), task("end", "root"), task("all-other").model_copy(update={"copy_of": "all"}))
    log.run(result("root").model_copy(update={"role": role, "tasks": tasks}))
    return grown(log.state, "spawned:root", team)


def test_what_is_spawned_is_routed_and_what_the_request_has_already_is_left_out():
    found = spawned(
        "work",
        task("end"),
        TaskSpec(id="all", description="of which there is a copy", broadcast=True, match_some=("aside",)),
        TaskSpec(id="x", description="x", tag="aside"),
        TaskSpec(id="y", description="y", broadcast=True, match_some=("aside",), dependencies=("root",)),
        TaskSpec(id="z", description="z {item}", tag="work", over="x"),
    )

    assert found.refused is None
    assert [(spec.id, spec.tag, spec.roles, spec.dependencies) for spec in found.add] == [
        ("x", "aside", ("other", "third"), ()),
        ("y-other", "other", (), ("root",)),
        ("y-third", "third", (), ("root",)),
        ("z", "work", (), ("x",)),
    ]


@pytest.mark.parametrize(
    ("role", "spec", "spawns", "reason"),
    [
        ("work", task("x"), False, "the role 'work' may not add tasks; write spawns: true under it"),
        ("gone", task("x"), True, "the role 'gone' may not add tasks"),
        ("work", task("x").model_copy(update={"tag": "nobody"}), True, "tasks.x.tag: nobody has the tag 'nobody'"),
        ("work", task("x", "nothing"), True, "no task has the id 'nothing'"),
        ("work", task("x", "end"), True, "tasks would wait for each other"),
        ("work", task("x").model_copy(update={"over": "root", "description": "no"}), True, "{item} stands nowhere"),
    ],
)
def test_what_is_spawned_is_checked_like_a_plan(role: str, spec: TaskSpec, spawns: bool, reason: str):
    found = spawned(role, spec, spawns=spawns)

    assert reason in (found.refused.message if found.refused else "")


@guards(ROUTING, "task.tag not in (None, task.worker)", rule="I10", replace="task.tag")
def test_a_template_for_a_named_worker_unfolds_whether_its_plan_or_a_person_names_it():
    team = TEAM.model_copy(update={"workers": ("ann",)})
    template = over("each", "find")
    named = template.model_copy(update={"tag": None, "worker": "ann"})
    routed = route(Plan(tasks=(task("find"), named)), team)
    given = order("reassign", "each", 1).model_copy(update={"role": None, "worker": "ann"})
    cases: list[tuple[tuple[TaskSpec, ...], list[Decision]]] = [
        (routed.tasks, []),
        ((task("find"), template), [given]),
    ]
    for tasks, orders in cases:
        log = planned(*tasks)
        for said in orders:
            log.own(said)
        log.run(gave("find", ["x", "y"]))

        found = grown(log.state, "over:each", team)

        assert (found.refused, [(spec.tag, spec.worker) for spec in found.add]) == (None, [("ann", "ann")] * 2)
    assert edited(routed, Budget(), team)[0] == routed, "a person may change a plan as it is shown"


@guards(ROUTING, "else _listed(task, team) if is_open else ()", rule="I10", replace="else ()")
def test_a_plan_that_a_person_changes_keeps_the_roles_that_match_unless_it_names_another():
    roles = tuple(FunctionRole(name=name, tags=("aside",), run="r:r", timeout_seconds=9) for name in ("other", "third"))
    team = Team(team="default", roles=roles)
    spec = TaskSpec(id="x", description="x", match_some=("aside",))
    shown = route(Plan(tasks=(spec,)), team)
    (task_shown,) = shown.tasks
    assert (task_shown.tag, task_shown.roles) == ("other", ("other", "third"))

    assert edited(shown, Budget(), team)[0] == shown
    (changed,) = edited(Plan(tasks=(task_shown.model_copy(update={"tag": "third"}),)), Budget(), team)[0].tasks
    assert (changed.tag, changed.roles, changed.timeout_seconds) == ("third", (), 9)
