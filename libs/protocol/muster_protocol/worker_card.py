"""The card of a worker in the bucket `workers`: its sign of life, and what others may know of it."""

from muster_protocol.plan import Frozen


class WorkerCard(Frozen):
    """Who is here, with which tags and how busy. What it leaves out is not known."""

    name: str = ""
    tags: tuple[str, ...] = ()
    slots: int = 0
    busy: int = 0
