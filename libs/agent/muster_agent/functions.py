"""Functions named by `package.module:function` in a team file, and the context that a function role works in."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster_protocol.errors import Invalid
from muster_protocol.messages import Output


def _nobody(*_: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a role sees beside its task: the outputs that it depends on, and whom it may tell how it goes."""

    outputs: Mapping[str, Output]
    progress: Callable[[str], None] = _nobody
    tool_used: Callable[[str, float, str | None], None] = _nobody


def imported(path: str, folder: Path) -> Callable[..., Any]:
    """The function behind `package.module:function`; modules beside the team file are found as well."""
    module_name, _, name = path.partition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    _check_not_another(module_name.partition(".")[0], folder)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise Invalid(f"cannot import {module_name!r}: {error}", path) from error
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise Invalid(f"cannot import {module_name!r}: {type(error).__name__}: {error}", path) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise Invalid(f"{module_name!r} has no function {name!r}", path)
    return function


def _check_not_another(package: str, folder: Path) -> None:
    """Two teams may both bring a `roles.py`; in one process the second would silently get the first one's."""
    beside = next((p for p in (folder / f"{package}.py", folder / package / "__init__.py") if p.is_file()), None)
    spec = importlib.util.find_spec(package) if beside else None
    if beside and spec and spec.origin and Path(spec.origin).resolve() != beside.resolve():
        raise Invalid(f"{package!r} is already {spec.origin}; rename {beside.name} beside the team file", package)
