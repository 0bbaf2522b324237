"""The conditions of a source, and what becomes of the source when one of them is taken away. Pure."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A source with one condition less."""

    line: int
    text: str  # of the condition
    becomes: str
    source: str

    def __str__(self) -> str:
        return f"{self.line}: {self.text}  →  {self.becomes}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A condition, and what stands there instead."""

    node: ast.expr
    becomes: str
    is_operand: bool = False  # of `and` or `or`


def changes(source: str) -> Iterator[Change]:
    """Every condition once: a branch that is never taken, a filter that lets all through, an operand left out."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    raw = source.encode()
    for place in _places(ast.parse(source)):
        node = place.node
        if node.end_lineno is None or node.end_col_offset is None:
            continue
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        text = raw[begin:end].decode()
        changed = (raw[:begin] + place.becomes.encode() + raw[end:]).decode()
        shown = " ".join(text.split())
        becomes = "left out" if place.is_operand else place.becomes
        yield Change(node.lineno, shown, becomes, changed)


def _places(tree: ast.AST) -> Iterator[_Place]:
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                yield from _of_test(test, "False")
            case ast.While(test=test) if not isinstance(test, ast.Constant):
                yield from _of_test(test, "False")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from _of_test(test, "True")
            case ast.match_case(guard=test) if test is not None:
                yield from _of_test(test, "False")
            case ast.BoolOp(op=op, values=values):
                neutral = "True" if isinstance(op, ast.And) else "False"
                yield from (_Place(value, neutral, is_operand=True) for value in values if not _is_zero(value))
            case _:
                pass


def _is_zero(value: ast.expr) -> bool:
    """`x or 0` is no condition: what counts in it is the same without the zero, which is as false."""
    return isinstance(value, ast.Constant) and type(value.value) in (int, float) and not value.value


def _of_test(test: ast.expr, becomes: str) -> Iterator[_Place]:
    """A condition as a whole; what only the type checker reads is none."""
    if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
        yield _Place(test, becomes)
