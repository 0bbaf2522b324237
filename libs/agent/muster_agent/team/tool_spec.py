"""A tool as a role names it: by its name alone, or as a mapping with `use` and what else holds for it."""

from typing import Self

from pydantic import model_validator

from muster_agent.team.strict import Strict

# Another worker may have written the file meanwhile, and what writes has to be done each time.
NEVER_CACHED = ("list_files", "read_file", "write_file")


class ToolUse(Strict):
    """One tool of a role."""

    use: str
    cache: bool = False  # what it returned is reused within the request, by all workers

    @model_validator(mode="after")
    def _check_cache(self) -> Self:
        if self.cache and self.use in NEVER_CACHED:
            raise ValueError(f"what {self.use} does has to be done each time; leave out cache")
        return self
