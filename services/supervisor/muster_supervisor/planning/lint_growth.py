"""What is wrong with the tasks of a plan that go over a list. Pure."""

from muster_protocol.plan import Plan
from muster_protocol.unfold import wrong_with_template
from muster_supervisor.planning.lint import Finding


def growth_findings(plan: Plan) -> list[Finding]:
    """What keeps a task from going over its list; that there is a task that gives one, the other rules say."""
    broadcast = {task.id for task in plan.tasks if task.broadcast}
    found: list[Finding] = []
    for task in plan.tasks:
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
