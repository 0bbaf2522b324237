"""Loads a team's functions, for roles and tools, by `package.module:function`, and calls them without blocking."""

import asyncio
import contextvars
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from muster_agent.spawning import Spawn
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.messages import Output


def _ignore(*_: object) -> None:
    """Publish nothing."""


def _add_nothing(description: str, **fields: Any) -> str:
    """The id of a task that nobody adds: for a role that is called outside of a worker."""
    return str(fields.get("id", description))


@dataclass(frozen=True, slots=True)
class Context:
    """What a role gets beside its task: the outputs that it depends on, functions that publish how it goes, and
    `spawn`, which adds a task."""

    outputs: Mapping[str, Output]
    progress: Callable[[str], None] = _ignore
    tool_used: Callable[[str, float, str | None, str | None], None] = _ignore  # tool, seconds, error, its class
    notes: Sequence[str] = ()  # what people said about the request; it grows while the task is done
    spawn: Spawn = _add_nothing
    wrote: Callable[[str], None] = _ignore  # a part of what its model writes


def load_function(path: str, folder: Path) -> Callable[..., Any]:
    """The function behind `package.module:function`; modules beside the team file are found as well."""
    module_name, _, name = path.partition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    _check_same_module(module_name.partition(".")[0], folder)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        way_out = _way_out(module_name, error, folder)
        raise Invalid(f"cannot import {module_name!r}: {error}; {way_out}", path) from error
    except (Exception, SystemExit) as error:  # importing a module runs its code, which may raise anything
        raise Invalid(f"cannot import {module_name!r}: {type(error).__name__}: {error}", path) from error
    function = getattr(module, name, None)
    if not callable(function):
        own = [each for each, value in vars(module).items() if inspect.isfunction(value) and not each.startswith("_")]
        raise Invalid(f"{module_name!r} has no function {name!r}{nearest(name, own) if own else ''}", path)
    return function


def load_handler(path: str, folder: Path) -> Callable[..., Any]:
    """The function of a role; one that cannot be called as `handler(task, ctx)`, or returns no output, is refused."""
    return check_handler(load_function(path, folder), path)


def check_handler(handler: Callable[..., Any], path: str) -> Callable[..., Any]:
    """The function, if a role can be called by it; `path` is how its error names it."""
    if inspect.isclass(handler):
        raise Invalid("is a class; a role is a function handler(task, ctx)", path)
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise Invalid("yields; a role's function returns its output once", path)
    try:
        signature = inspect.signature(handler)
    except ValueError:  # a function that is not written in Python does not always tell
        return handler
    try:
        signature.bind("task", "ctx")
    except TypeError:
        raise Invalid(f"takes {signature}; a role's function takes (task, ctx)", path) from None
    return handler


async def call(function: Callable[..., Any], *arguments: object, **named: object) -> Any:
    """Call a function and return its output: an async one in the event loop, a plain one in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments, **named)
    output = await _in_thread(partial(function, *arguments, **named))
    return await output if inspect.isawaitable(output) else output  # a plain function may return a coroutine


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Call it in a daemon thread of its own: if it hangs, other functions and the end of the process do not wait."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(output: Any, raised: BaseException | None) -> None:
        if done.cancelled():
            return
        if raised is None:
            done.set_result(output)
        else:
            is_plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            done.set_exception(raised if is_plain else RuntimeError(repr(raised)))  # a future takes no others

    def call() -> None:
        output, raised = None, None
        try:
            output = context.run(function)
        except BaseException as error:  # noqa: BLE001 - whatever it raises goes to the caller
            raised = error
        with suppress(RuntimeError):  # the loop is closed, and the caller with it
            loop.call_soon_threadsafe(settle, output, raised)

    threading.Thread(target=call, daemon=True).start()
    return await done


def _way_out(module_name: str, error: ImportError, folder: Path) -> str:
    """Where the module was looked for; or, where it is there and what it imports is not, what to do about that."""
    missing = error.name or ""
    if module_name != missing and not module_name.startswith(f"{missing}."):
        return f"{module_name} itself is there: mend what it imports, or install it here"
    close = get_close_matches(module_name, [file.stem for file in folder.glob("*.py")], n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}Looked for in {folder.resolve()} and among what is installed in {sysconfig.get_path('purelib')}"


def _check_same_module(package: str, folder: Path) -> None:
    """Refuse a module whose name is taken: two teams with a `roles.py` each would share the first one."""
    beside = next((p for p in (folder / f"{package}.py", folder / package / "__init__.py") if p.is_file()), None)
    spec = importlib.util.find_spec(package) if beside else None
    if beside and spec and spec.origin and Path(spec.origin).resolve() != beside.resolve():
        raise Invalid(f"{package!r} is already {spec.origin}; rename {beside.name} beside the team file", package)
