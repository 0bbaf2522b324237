"""What is wrong with how a plan is to grow: with tasks that go over a list, and with tasks that are added. Pure."""

from collections.abc import Sequence

from muster_agent.team.schema import Team
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.unfold import wrong_with_template
from muster_supervisor.planning.lint import Finding, errors, lint


def growth_findings(tasks: Sequence[TaskSpec]) -> list[Finding]:
    """What keeps tasks from going over their lists; that there is a task that gives each, the other rules say."""
    broadcast = {task.id for task in tasks if task.broadcast}
    found: list[Finding] = []
    for task in tasks:
        if task.over is None:
            continue
        if task.broadcast:
            text = "a task goes over a list or is broadcast; broadcast the one that gives the list, or the one after"
            found.append(Finding("error", f"tasks.{task.id}.broadcast", text))
        if task.over in broadcast:
            text = f"{task.over} is broadcast and gives no list; let one task gather its copies first"
            found.append(Finding("error", f"tasks.{task.id}.over", text))
        if wrong := wrong_with_template(task):
            field, _, text = wrong.partition(": ")
            found.append(Finding("error", f"tasks.{task.id}{field}", text))
    return found


def errors_of_added(add: Sequence[TaskSpec], team: Team) -> list[Finding]:
    """What keeps new tasks from running, looked at by themselves: what else they depend on is there."""
    ids = {spec.id for spec in add}
    alone = tuple(
        spec.model_copy(
            update={
                "dependencies": tuple(name for name in spec.dependencies if name in ids),
                "over": spec.over if spec.over in ids else None,
                "gather": None,
            }
        )
        for spec in add
    )
    return errors([*growth_findings(add), *lint(Plan(tasks=alone), team, is_map=True)])
