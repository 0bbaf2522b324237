"""Whose service the model of a role asks, and which role could do without it. Pure."""

from collections.abc import Callable

from muster_agent.team.schema import ModelRole, Team


def nobody(_: str) -> str:
    """Where no model asks a provider."""
    return ""


class Providers:
    """The providers of a team's roles. `of_model` is by the environment of this supervisor, as of its workers."""

    def __init__(self, team: Team, of_model: Callable[[str], str] = nobody) -> None:
        self.of_model = of_model
        roles = [role for role in team.roles if isinstance(role, ModelRole)]
        self._of_role = {role.name: of_model(role.model) for role in roles}
        self._spares = {
            role.name: tuple(
                other
                for other in (*role.fallbacks, role.other_model)
                if other is not None and of_model(other) != of_model(role.model)
            )
            for role in roles
        }

    def of_role(self, role: str) -> str:
        """Empty: its model asks nobody, or it has none."""
        return self._of_role.get(role, "")

    def spares(self, role: str) -> tuple[str, ...]:
        """The role's other models that ask another provider, in the order in which they are used."""
        return self._spares.get(role, ())
