"""There is one way to the terminal: whoever prints past it prints what others wrote as if it were ours."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.test_arrows import MODULES

PRINTERS = {"muster_cli.view.console", "muster_cli.view.printing.terminal"}
OTHERS = sorted(name for name in MODULES if name.startswith("muster_cli.") and name not in PRINTERS)
BUILT_IN = {"print", "input"}
OF_RICH = {"Console", "from_markup", "render_markup", "input", "out"}  # a console of its own, or markup of others
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def ways_around(tree: ast.AST) -> Iterator[str]:
    """The calls that print, ask or read markup by themselves."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if name in OF_RICH or (isinstance(called, ast.Name) and name in BUILT_IN):
            yield name
        elif isinstance(called, ast.Attribute) and name.startswith("write"):
            of = called.value
            if isinstance(of, ast.Attribute) and of.attr in STREAMS | {"buffer"}:
                yield f"{of.attr}.{name}"
        if any(keyword.arg == "markup" for keyword in node.keywords):
            yield f"{name}(markup=…)"


@pytest.mark.parametrize("name", OTHERS)
def test_only_the_console_prints(name: str):
    assert list(ways_around(ast.parse(MODULES[name].read_text(encoding="utf-8")))) == []


def test_a_way_around_is_found():
    source = "print(x); input(); Console(); Text.from_markup(x); sys.stdout.write(x); c.print(x, markup=True)"

    found = list(ways_around(ast.parse(source)))

    assert found == ["print", "input", "Console", "from_markup", "stdout.write", "print(markup=…)"]
