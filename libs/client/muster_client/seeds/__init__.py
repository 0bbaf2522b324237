"""The names of Kaizen's and the book's supervisor and workers, for a team that runs: see docs/from-the-seeds.md.

A team of Muster has to run (`muster up`): MUSTER_NATS_URL and MUSTER_TEAM say where and which. These functions block;
a program that uses asyncio takes `muster_client.Client` instead.
"""

from muster_client.seeds.book import Supervisor, Worker, team_of
from muster_client.seeds.coordinating import CoordinatorAgent
from muster_client.seeds.delegating import BaseAgentConfig, SupervisorAgent
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import Failed, TaskDict
from muster_client.seeds.workflow import supervisor_worker_workflow
from muster_client.seeds.working import WorkerAgent

__all__ = [
    "BaseAgentConfig",
    "CoordinatorAgent",
    "Failed",
    "SharedMemoryPool",
    "Supervisor",
    "SupervisorAgent",
    "TaskDict",
    "Worker",
    "WorkerAgent",
    "supervisor_worker_workflow",
    "team_of",
]
