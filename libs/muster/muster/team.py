"""A team in Python: made of roles or read from a team file, asked in this process, served, or written to a file."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, cast

from muster.here import Here
from muster.marks import Function, Role, keys_of
from muster.plan import Plan
from muster.team_file import write_team
from muster_agent.team.checking.role_code import role_code
from muster_agent.team.file import load_team, team_of
from muster_agent.team.schema import ModelRole
from muster_agent.team.schema import Team as TeamSpec
from muster_agent.tools.tool import KEYED, tool_of
from muster_client.client import Client, RequestFields
from muster_protocol.errors import Invalid
from muster_protocol.messages import Answer, Output

if TYPE_CHECKING:
    from muster_worker.trying.trial import Trial


class TeamKeys(TypedDict, total=False):
    """What a team may say beside its name and its roles, in the words of a team file."""

    supervisor: Mapping[str, Any]
    workers: Sequence[str]
    examples: Sequence[str]
    corpus: str | Path
    tables: str | Path
    limits: Mapping[str, Any]
    retry: Mapping[str, Any]
    callbacks: Mapping[str, Any]
    priorities: Mapping[str, Any]
    prices: Mapping[str, Mapping[str, float]]
    providers: Mapping[str, Mapping[str, Any]]
    rate_limits: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Any]
    databases: Mapping[str, str]
    web: Mapping[str, Any]


class Team:
    """A supervisor and its roles. `spec` is what a team file says."""

    def __init__(
        self,
        name: str,
        roles: Sequence[Role | Function],
        *,
        folder: Path | str = ".",
        **keys: Unpack[TeamKeys],
    ) -> None:
        """Raises TeamMistakes, which names everything that is wrong. Relative paths start at `folder`."""
        self._here = Here()
        listed = [_raw(role, self._here) for role in roles]
        paths = {key: str(path) for key, path in keys.items() if isinstance(path, Path)}
        raw: dict[str, Any] = {"team": name, **keys, **paths, "roles": listed}
        self.spec: TeamSpec = team_of(raw, Path(folder).resolve(), f"Team({name!r})")

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """The team of a team file; raises TeamMistakes as `muster check` says them."""
        return cls._of(load_team(path, role_code()), Here())

    def to_file(self, path: Path | str, *, replace: bool = False) -> None:
        """Write the team file; Invalid where a worker could not import a function, or where a file is already."""
        self._here.require_none()
        write_team(self.spec, Path(path), replace=replace)

    def offline(self) -> Self:
        """The same team without a language model, also where there is a key: for tests."""
        supervisor = self.spec.supervisor.model_copy(update={"model": "offline"})
        without = {"model": "offline", "fallbacks": (), "other_model": None}
        roles = [role.model_copy(update=without) if isinstance(role, ModelRole) else role for role in self.spec.roles]
        return self._of(self.spec.model_copy(update={"supervisor": supervisor, "roles": tuple(roles)}), self._here)

    async def run(self, asked: str | Plan | None = None, **fields: Unpack[RequestFields]) -> Answer:
        """Start a broker and this team, ask it a text or a plan, end everything, and return the answer.

        All of it lives in this process and a folder that is removed afterwards. `fields` are those of `Client.submit`.
        """
        async with self.up() as client:
            if isinstance(asked, Plan):
                fields["plan"] = asked.spec
            request_id = await client.submit(asked if isinstance(asked, str) else None, **fields)
            return await client.answer(request_id)

    @asynccontextmanager
    async def up(self) -> AsyncGenerator[Client]:
        """A broker and this team in this process, for several requests; ended when the block is left."""
        from muster.running import running  # services and broker are for whoever runs them

        async with running(self.spec, self._here) as client:
            yield client

    async def serve(self) -> None:
        """Run a supervisor and a worker of this team for the broker of MUSTER_NATS_URL, until a signal."""
        from muster.serving import serve

        await serve(self.spec, self._here)

    async def try_role(
        self,
        name: str,
        text: str = "",
        *,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Output] | None = None,
        model: str | None = None,
    ) -> "Trial":
        """Run one role alone, without a broker: what `muster role try` shows. A failure is in the outcome."""
        from muster.running import environment
        from muster_worker.trying.trial import Trying, try_role

        with self._here.importable():
            trying = Trying(self.spec, name, environment())
        return await try_role(trying, text, inputs=inputs, outputs=outputs, model=model)

    @classmethod
    def _of(cls, spec: TeamSpec, here: Here) -> Self:
        team = cls.__new__(cls)
        team.spec, team._here = spec, here
        return team


def _raw(role: Role | Function, here: Here) -> dict[str, Any]:
    """A role as a team file says it."""
    keys, function = keys_of(role)
    if function is not None:
        path = here.path_of(function)
        if here.has(path):
            _require_shared(here.why(path), keys)
        return {**keys, "run": path}
    tools: object = keys.get("tools")
    if isinstance(tools, list | tuple):
        keys["tools"] = [_raw_tool(tool, here) for tool in cast("Sequence[object]", tools)]
    return keys


def _require_shared(why: str, said: Mapping[str, object]) -> None:
    """Raise if what only this process has is to run in another one."""
    if said.get("isolated"):
        raise Invalid(f"{why}, and a process of its own could not find it: move it to a module", "isolated")


def _raw_tool(tool: object, here: Here) -> object:
    """A tool as a team file says it; what only this process has runs in it."""
    said = dict(cast("Mapping[str, object]", tool)) if isinstance(tool, Mapping) else {"use": tool}
    function = said.get("use")
    if callable(function):
        tool_of(function, effect=KEYED if said.get("effect") == KEYED else None)
        said["use"] = path = here.path_of(function)
        if here.has(path):
            _require_shared(here.why(path), said)
            said.setdefault("isolated", False)
    return said["use"] if said.keys() == {"use"} else said
