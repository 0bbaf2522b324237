"""What a role's card says of its tools: which documents it can search, and which tables it can query."""

from collections.abc import Mapping

from muster_agent.team.schema import Team
from muster_agent.tools.corpus import files_in
from muster_agent.tools.tool import Tool
from muster_protocol.workers.role_card import RoleCard, line


def card_with(card: RoleCard, team: Team, tools: Mapping[str, Tool]) -> RoleCard:
    """The card of a role that has these tools loaded."""
    shown: dict[str, str] = {}
    if "search_corpus" in tools and team.corpus is not None:
        shown["corpus"] = line(", ".join(name for name, _ in files_in(team.corpus)))
    if "query_database" in tools:
        listed = tools["query_database"].spec.description.splitlines()
        shown["tables"] = line("; ".join(table[2:] for table in listed if table.startswith("- ")))
    return card.model_copy(update={**shown, "tools": tuple(tools)})
