"""What `muster up` suggests fits the team that is up."""

import json
import shlex

from muster_agent.team.file import load_team
from muster_agent.team.lookup import sample_team_file
from muster_agent.team.schema import FunctionRole, ModelRole, Team
from muster_cli.local.suggestions import GENERAL, suggestion

FUNCTION = FunctionRole(name="good", run="roles:good")


def test_the_sample_team_suggests_what_it_knows_about():
    assert suggestion(load_team(sample_team_file())).line("muster").startswith("muster ask 'Compare AWS")


def test_a_team_of_functions_gets_a_plan_that_it_can_do():
    found = suggestion(Team(team="small", roles=(FUNCTION,)))
    echo, text, pipe, *words = shlex.split(found.line("bin/muster"))

    assert (echo, pipe, words) == ("echo", "|", ["bin/muster", "submit", "--plan", "-"])
    assert json.loads(text) == found.fields["plan"]
    assert found.fields["plan"]["tasks"][0]["tag"] == "good"


def test_a_team_says_itself_what_to_ask():
    team = Team(team="small", roles=(FUNCTION,), examples=("What's new?",))

    assert shlex.split(suggestion(team).words) == ["ask", "What's new?"]
    assert suggestion(Team(team="small", roles=(ModelRole(name="a"),))).fields == {"text": GENERAL}
