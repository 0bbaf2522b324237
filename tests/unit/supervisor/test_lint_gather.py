"""What a task may ask of those that it depends on."""

import pytest

from muster_protocol.messages import Budget
from muster_supervisor.planning.lint import errors, lint
from tests.unit.supervisor.test_lint import TEAM, plan


@pytest.mark.parametrize("gather", ["all", "done", {"at_least": 1}, {"at_least": 2}])
def test_no_more_can_be_asked_than_there_are(gather: object):
    tasks = plan(
        {"id": "a", "tag": "fast"},
        {"id": "b", "tag": "fast"},
        {"id": "c", "tag": "fast", "dependencies": ["a", "b"], "gather": gather},
    )

    assert not errors(lint(tasks, TEAM, Budget()))
