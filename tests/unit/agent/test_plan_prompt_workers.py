"""The planner reads the names of workers where a team has some, and nothing about them elsewhere."""

import pytest

from muster_agent.models.port import Ask, PlanBrief
from muster_agent.models.prompts import prompt


@pytest.mark.parametrize("workers", [(), ("alice", "bob")])
def test_the_names_of_workers_are_said_if_there_are_any(workers: tuple[str, ...]):
    told = prompt(Ask(PlanBrief("count", (), workers=workers))).system

    assert ("Their names: alice, bob." in told) == bool(workers)
    assert "- `over`: the id of a task whose output is a list" in told
