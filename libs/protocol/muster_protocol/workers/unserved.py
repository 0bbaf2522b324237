"""What no live worker serves."""

from collections.abc import Collection

from muster_protocol.fold.state import TaskPhase, TaskState


def unserved_tag(task: TaskState, live_tags: Collection[str]) -> str | None:
    """The tag of a task that nobody serves, if there is one."""
    spec = task.spec
    if spec.worker is not None or (task.phase is TaskPhase.RESERVED and task.queue):
        return None if task.queue in live_tags else task.queue
    if spec.roles:
        return None if set(spec.roles) & set(live_tags) else " or ".join(spec.roles)
    for tag in (spec.tag, *spec.match_all):
        if tag is not None and tag not in live_tags:
            return tag
    if spec.match_some and not set(spec.match_some) & set(live_tags):
        return " or ".join(spec.match_some)
    return None
