"""Figures and addresses of a composed text that no result has; sources; what the confidence is made of."""

import pytest

from muster_protocol.messages import ConfidenceParts
from muster_supervisor.checking.claims import claims
from muster_supervisor.checking.findings import Findings, checked, find, to_check
from muster_supervisor.checking.sources import MAX_SOURCES, sources
from muster_supervisor.checking.support import MAX_UNSUPPORTED, Support
from tests.unit.supervisor.finished import finished

RESULTS = [
    "Alpha sold 1,000 units for $4.2 million; churn was 4.2 %. See https://example.org/alpha.",
    "Beta sold 250 units for $1.3 million in 2023.",
    "Gamma sold 30 units. It is 330 m away.",
]


def unsupported(text: str, *results: str) -> tuple[str, ...]:
    texts = results or RESULTS
    found = {f"t{number}": claims(f"t{number}", one) for number, one in enumerate(texts)}
    return Support(texts, (3,), found).unsupported(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "1000 units",
        "churn of 0.042",
        "4.2 percent",
        "$4.2m",
        "4,200,000 dollars",
        "together 1,250 units",  # a sum of two
        "750 more than Beta",  # a difference
        "$5.5 million in all",
        "1,280 units of all three",  # a sum over all results
        "0.33 km",
        "In 2023",
        "1. Alpha leads\n2. Beta follows",
        "all 3 results, for two reasons",
        "https://example.org/alpha/ and www",
    ],
)
def test_what_the_results_say_or_add_up_to_is_supported(text: str):
    assert unsupported(text) == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Alpha sold 1,100 units", "1,100"),
        ("$4.2 billion", "$4.2 billion"),
        ("churn of 7.5 %", "7.5 %"),
        ("in 1987", "1987"),
        ("see https://example.com/alpha.", "https://example.com/alpha"),
    ],
)
def test_what_no_result_says_is_listed(text: str, missing: str):
    assert unsupported(f"Alpha sold 1,000 units. {text}") == (missing,)


def test_the_list_has_a_bound():
    assert len(unsupported(" ".join(f"{7_000_000 + 13 * n}" for n in range(100)))) == MAX_UNSUPPORTED


def test_what_a_person_asked_about_is_supported():
    state = finished({"a": "The price is 10 euros.", "b": "ok"})
    found = checked(find(to_check(state), 2), to_check(state), "For 77 people: 10 euros", ["for 77 people"], (2,))

    assert (found.unsupported, found.supported) == ((), 1.0)


def test_sources_are_addresses_fields_and_lines_of_that_name_each_once():
    outputs = [
        "Found. Source: a book\nSource: table prices.csv\nSee https://example.org/a, and https://example.org/a.",
        {"text": "x", "sources": ["annual report", "https://example.org/b"], "other": "no source"},
        7,
    ]

    assert sources(outputs) == (
        "a book",
        "table prices.csv",
        "https://example.org/a",
        "annual report",
        "https://example.org/b",
    )
    assert len(sources([f"https://example.org/{n}" for n in range(200)])) == MAX_SOURCES


def test_the_confidence_is_the_product_of_shares_that_are_named():
    assert Findings().confidence(2, 4) == ConfidenceParts(done=0.5)
    found = Findings(contradicting=frozenset({"a", "b"}), supported=0.75)
    assert found.confidence(4, 4) == ConfidenceParts(done=1.0, agreeing=0.5, supported=0.75)
    assert found.confidence(4, 4).product == 0.375
