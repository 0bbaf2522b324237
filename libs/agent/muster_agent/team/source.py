"""The text of a team file: what it says as YAML, the line of each value, and keys that stand there twice."""

from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from muster_agent.team.checking.mistakes import Mistake, Place


@dataclass(slots=True)
class Source:
    """A team file as it was read; `raw` is empty if it could not be."""

    raw: dict[Any, Any] = field(default_factory=dict[Any, Any])
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    mistakes: list[Mistake] = field(default_factory=list[Mistake])


def read_source(text: str) -> Source:
    """What the text says; where it is no YAML at all, that is its only mistake."""
    source = Source()
    loader = yaml.SafeLoader("")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        raw = cast("object", loader.construct_document(node)) if node is not None else None
    except yaml.MarkedYAMLError as error:
        source.mistakes.append(_not_yaml(error))
        return source
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-13-40
        source.mistakes.append(Mistake((), f"not a YAML file: {' '.join(str(error).split())}"))
        return source
    finally:
        loader.dispose()
    if node is not None and isinstance(raw, dict):
        source.raw = cast("dict[Any, Any]", raw)
        _walk(node, (), source, set())
    else:
        source.mistakes.append(Mistake((), "a team file is a mapping with the keys team and roles"))
    return source


def _not_yaml(error: yaml.MarkedYAMLError) -> Mistake:
    reason = " ".join(part for part in (error.context, error.problem) if part)
    way_out = "; YAML is indented with spaces" if "'\\t'" in reason else ""
    mark = error.problem_mark
    return Mistake((), f"not a YAML file: {reason}{way_out}", line=mark.line + 1 if mark else None)


def _walk(node: yaml.Node, place: Place, source: Source, seen: set[int]) -> None:
    """Note the lines of a node and all below it; one that is repeated by an alias is visited once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    match node:
        case yaml.MappingNode():
            _walk_mapping(node, place, source, seen)
        case yaml.SequenceNode():
            for number, element in enumerate(cast("list[yaml.Node]", node.value)):
                source.lines.setdefault((*place, number), element.start_mark.line + 1)
                _walk(element, (*place, number), source, seen)
        case _:
            pass


def _walk_mapping(node: yaml.MappingNode, place: Place, source: Source, seen: set[int]) -> None:
    first: dict[str, int] = {}
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        name, line = str(key.value), key.start_mark.line + 1
        if name in first and name != "<<":
            reason = f"a second key {name!r}: the first is in line {first[name]}; keep one of them"
            source.mistakes.append(Mistake((*place, name), reason, line=line))
        first.setdefault(name, line)
        source.lines[(*place, name)] = line
        _walk(value, (*place, name), source, seen)
