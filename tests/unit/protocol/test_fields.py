"""A field that is misspelt or not supported is an error that names it."""

from functools import reduce
from typing import Any

import pytest

from muster_protocol.errors import Invalid
from muster_protocol.fields import check_spelling, check_supported
from muster_protocol.messages import Request

TASK = {"id": "a", "description": "find the height"}
DEEP = reduce(lambda inner, _: [inner], range(5000), list[Any]())


@pytest.mark.parametrize(
    ("fields", "where", "meant"),
    [
        ({"txt": "hi"}, "txt", "text"),
        ({"text": "hi", "deadline": 3}, "deadline", "deadline_seconds"),
        ({"text": "hi", "budget": {"token": 3}}, "budget.token", "tokens"),
        ({"plan": {"taks": [TASK]}}, "plan.taks", "tasks"),
        ({"plan": {"tasks": [TASK, {**TASK, "dependancies": ["b"]}]}}, "plan.tasks.1.dependancies", "dependencies"),
        ({"map": {"template": {"descripton": "x"}, "items": ["a"]}}, "map.template.descripton", "description"),
        ({"map": {"template": TASK, "items": ["a"], "reduce": {"tagg": "x"}}}, "map.template.id", None),
    ],
)
def test_a_misspelt_field_is_named_with_the_nearest_known_one(fields: object, where: str, meant: str | None):
    with pytest.raises(Invalid) as raised:
        check_spelling(fields)

    assert raised.value.where == where
    assert meant is None or f"did you mean {meant!r}?" in raised.value.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"plan": {"tasks": [{**TASK, "worker_type": "research"}]}, "metadata": {"plan": {"anything": 1}}},
        {"text": "hi", "budget": {"tasks": 3}},
        {"plan": "no object"},
        {"plan": DEEP},
        ["no object"],
        None,
    ],
)
def test_what_is_spelt_right_or_no_object_passes(fields: object):
    check_spelling(fields)


def test_every_field_of_a_plain_request_is_supported():
    check_supported(Request.of({"text": "hi", "num_tasks": 3, "budget": {"tokens": 5}, "deadline_seconds": 3}))


def test_a_field_that_is_not_supported_is_refused_by_its_name():
    with pytest.raises(Invalid, match=r"^budget\.depth: this version does not support it"):
        check_supported(Request.of({"text": "hi", "budget": {"depth": 1}}))
