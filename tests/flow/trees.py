"""The spans of one request as a tree, held to what every tree of ours is: one root, no orphan, names as agreed."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from muster_bus.tracing import names
from muster_testing.otlp import Collector, ExportedSpan

LIMIT_SECONDS = 20.0


class Tree:
    """The spans of one trace; made only of those that hang together."""

    def __init__(self, spans: list[ExportedSpan]) -> None:
        self.spans = {span.id: span for span in spans}  # a workflow span may be exported twice, with the same ids
        self.roots = [span for span in self.spans.values() if span.parent not in self.spans]

    @property
    def root(self) -> ExportedSpan:
        (root,) = self.roots
        return root

    def paths(self) -> Counter[str]:
        """How often each way from the root down to a span occurs."""
        return Counter(self.path(span) for span in self.spans.values())

    def path(self, span: ExportedSpan) -> str:
        above = self.spans.get(span.parent)
        return f"{self.path(above)} > {span.name}" if above is not None else span.name

    def named(self, beginning: str) -> list[ExportedSpan]:
        """The spans whose name begins like this, in the order of their start."""
        found = (span for span in self.spans.values() if span.name.startswith(beginning))
        return sorted(found, key=lambda span: span.start)

    def check(self, caller: str = "") -> None:
        """One root, under whoever asked if somebody did, no orphan, every span as the conventions have it."""
        assert len(self.roots) == 1, [self.path(span) for span in self.roots]
        assert self.root.parent == caller, f"{self.root.name} hangs under a span that nobody exported"
        for span in self.spans.values():
            if span.service.startswith("muster-"):
                check_conventions(span)


def check_conventions(span: ExportedSpan) -> None:
    """The span's name, kind, attributes and events are those of `names.SPANS`."""
    (rule,) = [rule for rule in names.SPANS if rule.fits(span.name)]
    assert span.kind in {kind.value + 1 for kind in rule.kinds}, span  # OTLP counts from one
    assert set(rule.required) <= span.attributes.keys(), (span.name, set(rule.required) - span.attributes.keys())
    assert {event.name for event in span.events} <= set(names.EVENTS), span
    if not span.name.startswith(("GET", "POST")):
        assert span.attributes.keys() <= ATTRIBUTES, span.attributes.keys() - ATTRIBUTES
    assert bool(span.error_type) == span.is_failed, span


ATTRIBUTES = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}


async def tree_of(
    collector: Collector, trace_id: str, is_complete: Callable[[Tree], bool], *, caller: str = ""
) -> Tree:
    """The tree of a trace once it is complete: each service exports by itself."""
    limit = time.monotonic() + LIMIT_SECONDS
    while True:
        tree = Tree([span for span in collector.spans if span.trace == trace_id])
        if len(tree.roots) == 1 and is_complete(tree):
            tree.check(caller)
            return tree
        if time.monotonic() > limit:
            raise AssertionError(f"the tree is not complete: {dict(tree.paths())}")
        await asyncio.sleep(0.02)


def has(**counts: int) -> Callable[[Tree], bool]:
    """Whether a tree has so many spans whose names begin with these words, and its answer.

    The answer is exported at once, before what ended a moment earlier: `compose=1` waits for all that its owner wrote.
    """

    def check(tree: Tree) -> bool:
        return all(len(tree.named(name)) >= count for name, count in counts.items()) and bool(tree.named("answer "))

    return check
