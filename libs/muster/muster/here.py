"""The functions of a team by the names that a team file gives them; those that no import reaches have a module here."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Any

from muster.marks import Function
from muster_agent.team.schema import is_import_path
from muster_protocol.errors import Invalid


class Here:
    """Closures, lambdas and what the program itself defines: only this process has them."""

    def __init__(self) -> None:
        self._module = ModuleType(f"muster_here_{token_hex(4)}")
        self._why: dict[str, str] = {}

    def path_of(self, function: Function) -> str:
        """`module:function`: where a worker finds it, or, if it would find nothing there, where this process does."""
        path, why = import_path(function)
        return path if not why else self._add(function, why)

    def has(self, path: str) -> bool:
        """Whether only this process finds the function."""
        return path in self._why

    def why(self, path: str) -> str:
        return self._why[path]

    @contextmanager
    def importable(self) -> Generator[None]:
        """While a worker of this process loads its roles."""
        sys.modules[self._module.__name__] = self._module
        try:
            yield
        finally:
            del sys.modules[self._module.__name__]

    def require_none(self) -> None:
        """Raise if a function could not be found by a worker of another process."""
        if self._why:
            raise Invalid(
                f"{'; '.join(self._why.values())}. A team file names functions as module:function: move them to a "
                "module beside it, such as tools.py, and import them from there",
                "functions",
            )

    def _add(self, function: Function, why: str) -> str:
        known: dict[str, Any] = vars(self._module)
        name = str(getattr(function, "__name__", ""))
        name = name if name.isidentifier() else "function"
        names = chain((name,), (f"{name}_{n}" for n in count(2)))
        place = next(place for place in names if known.get(place, function) is function)
        setattr(self._module, place, function)
        path = f"{self._module.__name__}:{place}"
        self._why[path] = why
        return path


def import_path(function: Function) -> tuple[str, str]:
    """`module:function` and an empty text; or why nothing is found there."""
    name, module = str(getattr(function, "__qualname__", "")), str(getattr(function, "__module__", ""))
    path = f"{module}:{name}"
    if "<lambda>" in name:
        return path, "a lambda has no name"
    if "<locals>" in name:
        return path, f"{name.rpartition('.')[2]} is defined inside {name.partition('.<locals>')[0]}()"
    if module == "__main__":
        return path, f"{name} is defined in the program itself"
    if not is_import_path(path) or getattr(sys.modules.get(module), name, None) is not function:
        return path, f"{path} is no function of a module"
    return path, ""


def require_beside(path: str, folder: Path) -> None:
    """Raise if a module lies beside the program, where only this program finds it, and not beside the team file."""
    module = path.partition(":")[0]
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if file is None:
        return
    root = Path(file).resolve().parent
    root = root.parent if Path(file).name == "__init__.py" else root
    if root != folder.resolve() and root in {Path(sys.path[0]).resolve(), Path.cwd()}:
        raise Invalid(f"{module} lies in {root}: write the team file there, so that a worker finds it", path)
