"""Muster for tests: a broker, a cluster, a running team, scripted roles and models; `fixtures` is for pytest."""

from muster_agent.models.scripted import Scripted
from muster_testing.broker import pause, resume, running_broker
from muster_testing.chat_server import ChatServer, running_chat_server
from muster_testing.cluster import Cluster, running_cluster
from muster_testing.messages_server import MessagesServer, running_messages_server
from muster_testing.otlp import Collector
from muster_testing.proxy import Proxy, running_proxy
from muster_testing.services import Services
from muster_testing.team import RunningTeam, running_team
from muster_testing.waiting import until, until_asked

__all__ = [
    "ChatServer",
    "Cluster",
    "Collector",
    "MessagesServer",
    "Proxy",
    "RunningTeam",
    "Scripted",
    "Services",
    "pause",
    "resume",
    "running_broker",
    "running_chat_server",
    "running_cluster",
    "running_messages_server",
    "running_proxy",
    "running_team",
    "until",
    "until_asked",
]
