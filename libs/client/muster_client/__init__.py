"""Ask a team: submit a request, follow it, await its answer, cancel it."""

from muster_client.client import Client
from muster_client.follow import LiveEvent, Update
from muster_client.orders import Answered
from muster_client.overdue import NoAnswer
from muster_client.replies import NotAsked, Settled

__all__ = ["Answered", "Client", "LiveEvent", "NoAnswer", "NotAsked", "Settled", "Update"]
