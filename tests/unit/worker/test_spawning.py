"""What a role adds while it does its own task: which calls are understood, and what the result carries."""

from typing import Any

import pytest

from muster_agent.budget import Meter
from muster_agent.functions import Context
from muster_agent.models.port import Reply, ToolCall
from muster_agent.models.scripted import Scripted
from muster_agent.spawning import Spawning
from muster_agent.team.schema import ModelRole, Team
from muster_protocol.errors import Invalid, Terminal
from muster_protocol.messages import Task
from muster_protocol.messages.result import MAX_SPAWNED
from muster_worker.runners.model import ModelRunner
from tests.unit.worker.test_executor import task

TEAM = Team(
    team="default",
    roles=(
        ModelRole(name="reader", spawns=True, description="reads"),
        ModelRole(name="writer", tags=("prose",), description="writes"),
    ),
)


def spawning(*, is_allowed: bool = True) -> Spawning:
    return Spawning(of("page"), "reader", is_allowed=is_allowed)


def of(task_id: str) -> Task:
    return task("reader").model_copy(update={"task_id": task_id})


def test_without_a_tag_it_is_for_the_same_role_and_without_an_id_it_is_new():
    spawn = spawning()

    ids = [spawn("read a"), spawn("write", tag="writer", id="report", dependencies=("page-s1",)), spawn("read b")]

    assert ids == ["page-s1", "report", "page-s3"]
    assert [(spec.id, spec.tag, spec.dependencies) for spec in spawn.added()] == [
        ("page-s1", "reader", ()),
        ("report", "writer", ("page-s1",)),
        ("page-s3", "reader", ()),
    ]


def test_an_id_that_is_added_twice_is_one_task():
    spawn = spawning()
    spawn("read a", id="a")
    spawn("read a again", id="a")

    assert [spec.description for spec in spawn.added()] == ["read a"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"tags": "reader"}, "spawn: a task has no 'tags'; did you mean 'tag'"),
        ({"item_of": "a"}, "spawn: a task has no 'item_of'"),
        ({"tag": "not a tag"}, "spawn.tag: "),
        ({"description": ""}, "spawn.description: "),
    ],
)
def test_a_task_that_makes_no_sense_is_refused_where_it_is_added(fields: dict[str, Any], reason: str):
    with pytest.raises(Invalid) as refused:
        spawning()(**{"description": "read", **fields})

    assert reason in str(refused.value)


def test_there_is_a_most():
    spawn = spawning()
    for _ in range(MAX_SPAWNED):
        spawn("read")

    with pytest.raises(Invalid, match="a task adds 1,000 others at the most"):
        spawn("read")


def test_a_role_that_may_not_fails_even_if_it_passes_over_the_error():
    spawn = spawning(is_allowed=False)
    with pytest.raises(Terminal, match="write spawns: true under it"):
        spawn("read")

    with pytest.raises(Terminal, match="write spawns: true under it"):
        spawn.added()


async def test_a_model_adds_tasks_with_a_tool_that_names_the_roles():
    call = ToolCall("1", "add_task", {"description": "write it up", "tag": "prose", "depends_on": ["page"]})
    wrong = ToolCall("2", "add_task", {"description": "write it up", "tag": "nobody"})
    model = Scripted([Reply(tool_calls=(call, wrong)), Reply("done")])
    spawn, role = spawning(), ModelRole(name="reader", spawns=True)

    output = await ModelRunner(role, TEAM, lambda _: model).run(of("page"), Context({}, spawn=spawn), Meter())

    assert output == "done"
    assert [(spec.id, spec.tag, spec.dependencies) for spec in spawn.added()] == [("page-s1", "prose", ("page",))]
    assert [tool.name for tool in model.asked[0].tools] == ["add_task", "cannot_do"]
    assert "- writer (writer, prose): writes" in model.asked[0].tools[0].description
    assert [given.text for given in model.asked[1].transcript[0].outputs] == [
        "added as page-s1",
        "not added: nobody has the tag 'nobody'; tags: reader, writer, prose",
    ]


async def test_a_model_that_may_not_add_tasks_has_no_such_tool():
    model = Scripted([Reply("done")])

    await ModelRunner(ModelRole(name="reader"), TEAM, lambda _: model).run(of("page"), Context({}), Meter())

    assert [tool.name for tool in model.asked[0].tools] == ["cannot_do"]
