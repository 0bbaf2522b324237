"""Two books, each with a clerk of its own."""

from muster_agent.functions import Context
from muster_protocol.messages import Task

FARE = """\
The crossing to Oslo costs 89 euros, a dog 30 euros more.
Open question: Where on board do the rules let animals sleep?"""
RULES = {
    "animal": "Animals sleep in the kennel on deck 8 or in one of twelve cabins for animals.",
    "bicycle": "Bicycles travel on the car deck.",
}


def fares(_task: Task, _ctx: Context) -> str:
    """What it costs. What the price list does not say is left open, in a line that says so."""
    return FARE


def rules(task: Task, _ctx: Context) -> str:
    """The rules for whatever the task asks about."""
    found = [rule for subject, rule in RULES.items() if subject in task.description.lower()]
    return " ".join(found) or "The rules on board do not say."
