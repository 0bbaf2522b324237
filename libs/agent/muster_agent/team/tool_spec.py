"""A tool as a role names it: by its name alone, or as a mapping with `use` and what else holds for it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from muster_agent.team.strict import Strict

TIME_SECONDS = 180.0  # of one call in a process of its own
MEMORY_MB = 512
LEAST_MB = 64  # an interpreter with nothing to do has two thirds of it
# Another worker may have written the file meanwhile, and what writes has to be done each time.
NEVER_CACHED = ("list_files", "read_file", "write_file")
_LIMITS = ("timeout_seconds", "memory_mb", "env")

MemoryMb = Annotated[int, Field(ge=LEAST_MB)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]


class ToolUse(Strict):
    """One tool of a role. A function of the team's own runs in a process of its own, unless it says otherwise."""

    use: str
    cache: bool = False  # what it returned is reused within the request, by all workers
    effect: Literal["keyed"] | bool = False  # on the outside world: a call is stored before it is made
    isolated: bool = True
    timeout_seconds: float = Field(default=TIME_SECONDS, gt=0)
    memory_mb: MemoryMb = MEMORY_MB
    env: tuple[VariableName, ...] = ()  # of the worker's variables those that its process gets, beside the usual ones

    @property
    def is_isolated(self) -> bool:
        return ":" in self.use and self.isolated

    @model_validator(mode="after")
    def _check_that_all_is_read(self) -> Self:
        said = sorted(self.model_fields_set & {"effect", "isolated", *_LIMITS})
        if said and ":" not in self.use:
            raise ValueError(f"{self.use} is built in and runs in the worker; leave out {said[0]!r}")
        if self.cache and (self.effect or self.use in NEVER_CACHED):
            raise ValueError(f"what {self.use} does has to be done each time; leave out cache")
        refuse_limits(self.model_fields_set, is_isolated=self.isolated, keys=_LIMITS)
        return self


def refuse_limits(said: set[str], *, is_isolated: bool, keys: tuple[str, ...]) -> None:
    """Limits of a process are for what has one of its own."""
    if not is_isolated and (unread := [key for key in keys if key in said]):
        raise ValueError(f"{unread[0]} is for a process of its own; write isolated: true, or leave it out")
