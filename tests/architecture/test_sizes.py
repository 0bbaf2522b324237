"""Functions, files, parameter lists and folders are short; streams and subjects are named in two packages alone."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_arrows import MODULES

MAX_FUNCTION, MAX_MODULE, MAX_PARAMETERS, MAX_FOLDER = 40, 300, 6, 15
KNOW_THE_BROKER = ("muster_bus.", "muster_protocol.", "muster_testing.")
BROKER_NAME = re.compile(
    r"\$(KV|JS|O|SYS)\.|Nats-|(requests|tasks|results|events|control|turns|live)\.[\w*{]"
    r"|(REQUESTS|TASKS|RESULTS|EVENTS|CONTROL|TURNS|ERRORS|KV_\w+|OBJ_\w+)$"
)
ROOT = Path(__file__).parents[2]
BESIDE = {  # what is no package of ours: only its folders may be large
    str(path.relative_to(ROOT)): path
    for folder in ("tests", "bench", "scripts")
    for path in (ROOT / folder).rglob("*.py")
}
OTHERS = sorted(name for name in MODULES if not name.startswith(KNOW_THE_BROKER))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


@pytest.mark.parametrize("name", sorted({*MODULES, *BESIDE}))
def test_a_module_and_its_functions_are_short(name: str):
    source = (MODULES | BESIDE)[name].read_text(encoding="utf-8")
    tree = ast.parse(source)

    assert source.count("\n") <= MAX_MODULE
    assert [found.name for found in functions(tree) if lines(found) > MAX_FUNCTION] == []
    assert [found.name for found in functions(tree) if len(parameters(found)) > MAX_PARAMETERS] == []


def test_a_folder_can_be_read_at_a_glance():
    folders: Counter[Path] = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")

    assert {folder: count for folder, count in folders.items() if count > MAX_FOLDER} == {}


@pytest.mark.parametrize("name", OTHERS)
def test_streams_subjects_and_buckets_are_named_in_bus_and_protocol_alone(name: str):
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]

    assert [text for text in texts if BROKER_NAME.match(text)] == []
    assert "nc" not in attributes, "use what muster_bus offers instead of the connection inside it"
