"""Runs one attempt of one role and says what came of it. Whatever a role raises is its failure, never the worker's."""

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import from_json

from muster_agent.budget import Limit, Meter
from muster_agent.errors import BadOutput, ModelAway, OutOfBudget, Refused
from muster_agent.functions import Context, call, load_function
from muster_agent.loop import work
from muster_agent.models.choose import choose_model
from muster_agent.models.port import NOTHING, Model, WorkBrief
from muster_agent.team.schema import FunctionRole, ModelRole, Role, Team
from muster_agent.tools.load import tools_for
from muster_agent.tools.tool import Tool
from muster_protocol.errors import MusterError, Terminal
from muster_protocol.messages import Failure, Output, ResultStatus, Task, Usage

STACK_FRAMES = 4  # the role's own frames; the rest is ours
MAX_STACK = 2000
MAX_MESSAGE = 2000  # it is repeated in the answer, once or twice for each of up to ten thousand tasks
MAX_PLAIN = 2**63
MESSAGE_DEPTH = 8  # levels of lists and objects around an output, wherever it travels
_PLAIN = (str, int, bool, type(None))  # cannot hold anything that JSON does not know


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to."""

    status: ResultStatus
    role: str
    output: Output = None
    error: Failure | None = None
    usage: Usage = NOTHING
    tool_calls: tuple[dict[str, Any], ...] = ()


class FunctionRunner:
    """A role that is a plain function: async ones run here, others in a thread."""

    def __init__(self, role: FunctionRole, team: Team) -> None:
        self.name = role.name
        self.notice = ""
        self._handler = load_function(role.run, team.folder)
        self._is_async = inspect.iscoroutinefunction(self._handler)

    async def run(self, task: Task, ctx: Context, _meter: Meter) -> Output:
        heard = ctx if self._is_async else replace(ctx, progress=_from_thread(ctx.progress))
        return await call(self._handler, task, heard)


def _from_thread(progress: Callable[[str], None]) -> Callable[[str], None]:
    """The same voice for a function that runs beside the loop."""
    loop = asyncio.get_running_loop()

    def notice(text: str) -> None:
        loop.call_soon_threadsafe(progress, text)

    return notice


class ModelRunner:
    """A role that thinks: the loop of a model and the role's own tools."""

    def __init__(self, role: ModelRole, team: Team, models: Callable[[str], Model]) -> None:
        self.name = role.name
        self._role = role
        self._models = models
        self._tools: dict[str, Tool] = tools_for(role, team)
        self.notice = models(role.model).notice

    async def run(self, task: Task, ctx: Context, meter: Meter) -> Output:
        brief = WorkBrief(
            description=task.description,
            persona=self._role.persona,
            expected_output=task.expected_output,
            context=task.context,
        )
        model = self._models(task.model or self._role.model)
        text = await work(model, brief, self._tools, meter, ctx.tool_used)
        return fitting(text, task.expected_output)


class Executor:
    """The roles of one worker, ready to run."""

    def __init__(self, team: Team, env: Mapping[str, str], roles: Iterable[str] | None = None) -> None:
        chosen = team.roles if roles is None else tuple(team.role(name) for name in roles)
        self._team = team
        self._env = env
        self._models: dict[tuple[str, float], Model] = {}
        self._by_tag: dict[str, FunctionRunner | ModelRunner] = {}
        for role in chosen:
            runner = self._runner(role)
            for tag in role.tags:
                self._by_tag.setdefault(tag, runner)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._by_tag)

    def role_of(self, tag: str) -> str:
        return self._by_tag[tag].name if tag in self._by_tag else ""

    @property
    def notice(self) -> tuple[str, ...]:
        """What a person should be told about the models in use."""
        return tuple(dict.fromkeys(runner.notice for runner in self._by_tag.values() if runner.notice))

    async def run(self, task: Task, ctx: Context) -> Outcome:
        """The outcome of one attempt. Only a cancellation gets through."""
        runner = self._by_tag.get(task.tag)
        if runner is None:
            text = f"this worker has no role with the tag {task.tag!r}; it has: {', '.join(self._by_tag)}"
            return Outcome(ResultStatus.FAILED, "", error=_failure("logic", text))
        meter = Meter(Limit(task.tokens, task.usd))
        timer = asyncio.timeout(task.timeout_seconds)
        error: Failure | None = None
        output: Output = None
        try:
            async with timer:
                output = await runner.run(task, ctx, meter)
            error = not_json(output)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            error = _failure("logic", "the role was cancelled by something that it cancelled itself")
        except BaseException as raised:  # noqa: BLE001 - whatever a role raises is its failure
            is_late = isinstance(raised, TimeoutError) and timer.expired()
            late = f"no result within {task.timeout_seconds:g} s"
            error = _failure("timeout", late) if is_late else failure(raised)
        if error is None:
            return Outcome(ResultStatus.DONE, runner.name, output, None, meter.usage, tuple(meter.tool_calls))
        return Outcome(ResultStatus.FAILED, runner.name, None, error, meter.usage, tuple(meter.tool_calls))

    def _runner(self, role: Role) -> FunctionRunner | ModelRunner:
        match role:
            case FunctionRole():
                return FunctionRunner(role, self._team)
            case ModelRole():
                return ModelRunner(role, self._team, lambda name: self._model(name, role.offline_seconds))

    def _model(self, name: str, offline_seconds: float) -> Model:
        """One client per model and process."""
        key = (name, offline_seconds)
        if key not in self._models:
            self._models[key] = choose_model(name, self._env, self._team.prices, offline_seconds)
        return self._models[key]


_CLASSES: tuple[tuple[type[BaseException], str], ...] = (  # the first that fits
    (OutOfBudget, "resource"),
    (Refused, "refusal"),
    (BadOutput, "bad_output"),
    (ModelAway, "network"),
    (ConnectionError, "network"),
    (TimeoutError, "timeout"),
    (MemoryError, "resource"),
    (BaseException, "logic"),
)


def failure(raised: BaseException) -> Failure:
    """What an exception means for the attempt. Errors with a name explain themselves; others show where they arose."""
    error_class = next(name for kind, name in _CLASSES if isinstance(raised, kind))
    if isinstance(raised, MusterError) and str(raised):
        return _failure(error_class, str(raised), is_final=isinstance(raised, Terminal))
    text = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
    return _failure(error_class, text, stack=_stack(raised), is_final=isinstance(raised, Terminal))


def fitting(text: str, expected: str | dict[str, Any] | None) -> Output:
    """The text as it is, or, where the task has a schema, the JSON object in it."""
    if not isinstance(expected, dict):
        return text
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        output: Any = json.loads(bare)
    except ValueError as error:
        raise BadOutput(f"the output is not JSON: {error}: {text[:200]!r}") from None
    required: list[str] = expected.get("required", [])
    missing = [name for name in required if name not in _keys(output)]
    if missing:
        raise BadOutput(f"the output lacks {', '.join(missing)}")
    return output


def _keys(output: object) -> set[str]:
    return set(cast("dict[str, Any]", output)) if isinstance(output, dict) else set()


def too_large(outcome: Outcome, reason: str) -> Outcome:
    """What becomes of an outcome that no message can carry."""
    failure = _failure("bad_output", reason, is_final=True)
    return replace(outcome, status=ResultStatus.FAILED, output=None, error=failure, tool_calls=())


def not_json(output: Output) -> Failure | None:
    """The failure of an output that cannot travel; texts and whole numbers skip the trial."""
    if type(output) in _PLAIN and (output.isascii() if isinstance(output, str) else abs(output or 0) < MAX_PLAIN):
        return None
    try:
        text = json.dumps(output, ensure_ascii=False, allow_nan=False)
        from_json(f"{'[' * MESSAGE_DEPTH}{text}{']' * MESSAGE_DEPTH}".encode())  # as deep as an answer holds it
    except (TypeError, ValueError, RecursionError) as error:
        return _failure("bad_output", f"the output of type {type(output).__name__} is not JSON: {error}")
    return None


def _is_cancelled() -> bool:
    """Whether somebody asked the current task to stop; a role can also raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(error_class: str, text: str, stack: str | None = None, is_final: bool = False) -> Failure:
    text = text[:MAX_MESSAGE].encode(errors="backslashreplace").decode()  # a file's name may be no Unicode
    return Failure.model_validate({"class": error_class, "message": text, "stack": stack, "is_final": is_final})


def _stack(raised: BaseException) -> str:
    frames = traceback.extract_tb(raised.__traceback__)[-STACK_FRAMES:]
    return "".join(traceback.format_list(frames))[-MAX_STACK:].encode(errors="backslashreplace").decode()
