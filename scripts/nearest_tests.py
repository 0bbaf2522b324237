"""Which test files are nearest to a module: those that import it, then those of its package, then whole services."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scripts.tree_copy import module_of

GROUP = 12  # test files that run together: a failure ends the run, so the nearest should not wait for far ones
FOLDERS = ("tests/unit", "tests/bus", "tests/testing", "tests/flow")  # the quicker first


@dataclass(frozen=True, slots=True)
class Nearest:
    """The test files of a tree, and the modules that each names."""

    names: Mapping[str, frozenset[str]]
    has_services: bool

    @classmethod
    def of(cls, root: Path, *, has_services: bool) -> Self:
        files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("test_*.py"))]
        found = {path.relative_to(root).as_posix(): _named(path.read_text(encoding="utf-8")) for path in files}
        return cls(found, has_services)

    def own(self, file: str) -> list[str]:
        """The test files that import or guard a file."""
        module = module_of(file)
        return [test for test, names in self.names.items() if module in names or file in names]

    def groups(self, file: str) -> Iterator[list[str]]:
        """Groups of test files for a changed file, the nearest first; those that import or guard it make the first."""
        package = module_of(file).split(".")[0].removeprefix("muster_")
        own = self.own(file)
        others = [test for test in self.names if test.startswith(f"tests/unit/{package}/") and test not in own]
        if package == "bus":
            others += [test for test in self.names if test.startswith("tests/bus/") and test not in own]
        rest = [test for test in self.names if self.has_services and test.startswith("tests/flow/")]
        near = [test for test in own if self.has_services or not test.startswith("tests/flow/")] + others
        tests = near + [test for test in rest if test not in near]
        for start in range(0, len(tests), GROUP):
            yield tests[start : start + GROUP]


def _named(source: str) -> frozenset[str]:
    """The modules that a test file imports, and the files that its guards name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{alias.name}" for alias in names)}
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.Constant(value=str(text)) if text.endswith(".py") and "/" in text:
                found.add(text)
            case _:
                pass
    return frozenset(found)
