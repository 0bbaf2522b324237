"""The lines that tests guard, read from the `@guards` decorators of the test files without an import."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEST_SECONDS = 12  # a test that takes longer hangs, unless its guard says otherwise: the guarding tests take four


@dataclass(frozen=True, slots=True)
class Guard:
    """A line that a rule depends on, and the test that fails without it."""

    rule: str
    file: str
    line: str
    replace: str | None
    test: str  # as pytest names it, with its case
    seconds: int


def read_guards(tests: Path = ROOT / "tests") -> list[Guard]:
    """The guards of all test files, by file and line."""
    return [
        guard
        for path in sorted(tests.rglob("test_*.py"))
        for guard in guards_in(path.read_text(encoding="utf-8"), path.relative_to(tests.parent).as_posix())
    ]


def guards_in(source: str, file: str) -> list[Guard]:
    """The guards of one test file. The arguments of a decorator are literals, or constants of the file."""
    tree = ast.parse(source, file)
    constants = dict(filter(None, map(_constant, tree.body)))
    found: list[Guard] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "guards":
                    found.append(_guard(decorator, f"{file}::{node.name}", constants))
    return found


def _constant(node: ast.stmt) -> tuple[str, object] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
            return name, value
        case _:
            return None


def _guard(decorator: ast.Call, test: str, constants: Mapping[str, object]) -> Guard:
    names: dict[str, ast.expr] = dict(zip(("file", "line"), decorator.args, strict=False))
    names.update({keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg})
    given: dict[str, Any] = {}
    for name, value in names.items():
        try:
            given[name] = constants[value.id] if isinstance(value, ast.Name) else ast.literal_eval(value)
        except (KeyError, ValueError):
            raise ValueError(f"{test}: {name} of its guard is neither a literal nor a constant of the file") from None
    case = given.get("case")
    return Guard(
        rule=given["rule"],
        file=given["file"],
        line=given["line"],
        replace=given.get("replace"),
        test=f"{test}[{case}]" if case else test,
        seconds=given.get("seconds", TEST_SECONDS),
    )


def mutated(source: str, guard: Guard) -> str:
    """The source without the guarded line: its text replaced, or the whole statement that begins there left out."""
    if (count := source.count(guard.line)) != 1:
        raise ValueError(f"{guard.file} has this text {count} times, not once: {guard.line}")
    if guard.replace is not None:
        changed = source.replace(guard.line, guard.replace)
    else:
        changed = _without_statement(source, source[: source.index(guard.line)].count("\n") + 1)
    ast.parse(changed, guard.file)
    return changed


def _without_statement(source: str, number: int) -> str:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt) and node.lineno == number]
    if len(found) != 1:
        raise ValueError(f"no statement begins in line {number}: say what the line becomes")
    statement = found[0]
    lines = source.splitlines(keepends=True)
    lines[number - 1 : statement.end_lineno] = [f"{' ' * statement.col_offset}pass\n"]
    return "".join(lines)
