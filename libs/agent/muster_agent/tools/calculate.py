"""Exact arithmetic on an expression: in fractions instead of floats, and with limits on size and depth."""

import ast
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

MAX_LENGTH = 1000
MAX_DEPTH = 50
MAX_BITS = 8192  # about 2,500 digits; without a limit a power can fill the memory
_SHOWN_DIGITS = 12


class NotComputable(ValueError):
    """The expression breaks a rule of the calculator; the text says which."""


def calculate(expression: str) -> str:
    """Compute an arithmetic expression exactly: + - * / // % **, parentheses, abs, min, max, sum, avg, round."""
    return shown(value_of(expression))


def value_of(expression: str) -> Fraction:
    if len(expression) > MAX_LENGTH:
        raise NotComputable(f"the expression has {len(expression)} characters; at most {MAX_LENGTH} are allowed")
    source = expression.strip()
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotComputable(f"not an arithmetic expression: {source[:80]!r}") from None
    return _value(tree.body, source, 0)


def shown(value: Fraction) -> str:
    """Exact where a decimal can be; otherwise rounded to twelve digits, and marked as such."""
    if value.denominator == 1:
        return _digits(value.numerator)
    rest, places = value.denominator, 0
    while rest % 10 == 0 or rest % 5 == 0 or rest % 2 == 0:
        rest //= 10 if rest % 10 == 0 else 5 if rest % 5 == 0 else 2
        places += 1
    if rest == 1 and places <= 2 * _SHOWN_DIGITS:
        scaled = abs(value.numerator) * 10**places // value.denominator
        whole, part = divmod(scaled, 10**places)
        return f"{'-' if value < 0 else ''}{_digits(whole)}.{part:0{places}d}".rstrip("0")
    try:
        return f"{float(value):.{_SHOWN_DIGITS}g} (rounded)"
    except OverflowError:
        raise NotComputable("the result is too large to show") from None


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:
        raise NotComputable("the result is too large to show") from None


def _value(node: ast.expr, source: str, depth: int) -> Fraction:
    if depth > MAX_DEPTH:
        raise NotComputable(f"nested deeper than {MAX_DEPTH}")
    match node:
        case ast.Constant():
            value = _number(node, source)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand, source, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            value = _value(operand, source, depth + 1)
        case ast.BinOp(left=left, op=op, right=right):
            value = _binary(op, _value(left, source, depth + 1), _value(right, source, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            value = _call(name, [_value(arg, source, depth + 1) for arg in args])
        case _:
            what = (ast.get_source_segment(source, node) or "")[:60]
            raise NotComputable(f"{what!r} is not arithmetic; use numbers, + - * / // % ** and {', '.join(_FUNCTIONS)}")
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise NotComputable("a number in the expression grows too large")
    return value


def _number(node: ast.Constant, source: str) -> Fraction:
    match node.value:
        case bool():
            raise NotComputable(f"{node.value} is not a number")
        case int():
            return Fraction(node.value)
        case float():
            text = (ast.get_source_segment(source, node) or "").replace("_", "")
            number = Decimal(text)  # the digits as written: a float would have rounded them already
            if not number.is_finite() or abs(number.adjusted()) > 1000:
                raise NotComputable(f"{text} is too large or too small")
            return Fraction(number)
        case _:
            raise NotComputable(f"{str(node.value)[:60]!r} is not a number")


def _binary(op: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    compute = _OPERATORS.get(type(op))
    if compute is None:
        raise NotComputable(f"the operator {type(op).__name__} is not allowed; use + - * / // % **")
    try:
        return Fraction(compute(left, right))
    except ZeroDivisionError:
        raise NotComputable("division by zero") from None


def _power(number: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise NotComputable("only whole exponents are exact")
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    if bits * abs(exponent.numerator) > MAX_BITS:
        raise NotComputable(f"the exponent {_digits(exponent.numerator)[:20]} makes the number too large")
    return number**exponent.numerator


def _round(numbers: list[Fraction]) -> Fraction:
    if len(numbers) == 1:
        return Fraction(round(numbers[0]))
    number, places = numbers
    if places.denominator != 1 or not 0 <= places <= 30:
        raise NotComputable("round takes 0 to 30 decimal places")
    return round(number, places.numerator)


_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, tuple[Callable[[list[Fraction]], Fraction], int, int]] = {
    "abs": (lambda numbers: abs(numbers[0]), 1, 1),
    "min": (min, 1, 200),
    "max": (max, 1, 200),
    "sum": (lambda numbers: sum(numbers, Fraction(0)), 1, 200),
    "avg": (lambda numbers: sum(numbers, Fraction(0)) / len(numbers), 1, 200),
    "round": (_round, 1, 2),
}


def _call(name: str, numbers: list[Fraction]) -> Fraction:
    if name not in _FUNCTIONS:
        raise NotComputable(f"unknown function {name[:40]!r}; known: {', '.join(_FUNCTIONS)}")
    function, least, most = _FUNCTIONS[name]
    if not least <= len(numbers) <= most:
        raise NotComputable(f"{name} takes {least} to {most} numbers; it got {len(numbers)}")
    return function(numbers)
