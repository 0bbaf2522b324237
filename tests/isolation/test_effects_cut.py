"""A tool with an effect whose process is ended in the middle: nobody knows whether it has happened."""

from pathlib import Path
from typing import Any, cast

import pytest

from muster_agent.isolation.environment import own_environment
from muster_agent.isolation.errors import TookTooLong
from muster_agent.isolation.pool import Pool
from muster_agent.models.port import ToolCall
from muster_agent.team.schema import ModelRole
from muster_agent.tools.effects import Effects
from muster_agent.tools.load import tools_for
from muster_agent.turns import UnknownOutcome
from tests.buying_role import received
from tests.guards import guards
from tests.unit.agent.teams import team
from tests.unit.agent.test_effects import Kept

EFFECTS = "libs/agent/muster_agent/tools/effects.py"


@guards(EFFECTS, "                raise UnknownOutcome(_unknown(call, f", rule="I9")
@pytest.mark.parametrize(("name", "effect", "error"), [("send", True, UnknownOutcome), ("buy", "keyed", TookTooLong)])
async def test_it_is_not_told_to_the_model_as_a_failure_that_it_may_try_again(
    tmp_path: Path, name: str, effect: Any, error: type[Exception]
):
    (tmp_path / "hold").touch()
    said = {"use": f"tests.buying_role:{name}", "effect": effect, "timeout_seconds": 0.5, "env": ["MUSTER_TEST_FOLDER"]}
    made = team({"name": "clerk", "tools": [said]})
    pool, kept = Pool(1, {**own_environment(), "MUSTER_TEST_FOLDER": str(tmp_path)}), Kept()
    tools = tools_for(cast("ModelRole", made.roles[0]), made, pool)
    try:
        with pytest.raises(error, match="gave no output within"):
            await Effects(kept, tools).call(tools[name], ToolCall("c1", name, {"article": "a book"}))
    finally:
        await pool.close()

    assert len(received(tmp_path)) == 1
    assert kept.stored == (["intent"] if effect is True else ["intent", "outcome"])
