"""A map unfolds into one task for each item, whatever JSON value the item is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.errors import Invalid
from muster_protocol.messages import Request
from muster_protocol.plan import AtLeast, Plan, TaskSpec
from muster_protocol.unfold import MAX_LABEL, MapOver, Reduce, Template, label_of, unfold
from tests.guards import guards

CITIES: list[Any] = [
    {"name": "Oslo", "at": {"lat": 59.9}, "tags": ["fjord"]},
    {"name": "Rome", "at": {"lat": 41.9}, "tags": ["river"]},
]


def over(items: list[Any], description: str = "look at {item}", **more: Any) -> MapOver:
    template = {"description": description, "tag": "eye", **more}
    return Request.of({"map": {"template": template, "items": items}}).map or pytest.fail("no map")


def test_a_map_unfolds_into_a_task_for_each_item_and_one_that_sees_them_all():
    template = Template.model_validate({"description": "look at {item}", "tag": "eye", "timeout_seconds": 5})
    last = Reduce.model_validate({"description": "sum up", "worker_type": "writer", "gather": {"at_least": 1}})

    plan = unfold(MapOver(template=template, items=("one", "two"), reduce=last))

    look = TaskSpec(id="item-1", description="look at one", tag="eye", timeout_seconds=5, item_of="items")
    assert plan == Plan(
        goal="look at {item}",
        tasks=(
            look.model_copy(update={"label": "one", "inputs": {"item": "one"}}),
            look.model_copy(
                update={"id": "item-2", "description": "look at two", "label": "two", "inputs": {"item": "two"}}
            ),
            TaskSpec(
                id="reduce",
                description="sum up",
                tag="writer",
                dependencies=("item-1", "item-2"),
                gather=AtLeast(at_least=1),
            ),
        ),
    )


def test_fields_of_an_item_stand_in_the_texts_and_as_values_in_the_inputs():
    asked = over(
        CITIES,
        "How far is {item.name} ({item.at.lat}°, {item.tags.0}) from {{item}}?",
        inputs={"at": "{item.at}", "ask": ["for {item.name}"], "unit": "km"},
        expected_output="a number for {item.name}",
    )

    first = unfold(asked).tasks[0]

    assert first.description == "How far is Oslo (59.9°, fjord) from {item}?"
    assert first.inputs == {"at": {"lat": 59.9}, "ask": ["for Oslo"], "unit": "km", "item": CITIES[0]}
    assert first.expected_output == "a number for Oslo"
    assert first.label == "Oslo"


@pytest.mark.parametrize(
    ("item", "text", "label"),
    [
        (3, "3", "3"),
        (True, "true", "true"),
        (None, "null", "null"),
        ([1, "x"], '[1,"x"]', '[1,"x"]'),
        ({"x": "ü", "id": 7}, '{"x":"ü","id":7}', "7"),
        ("{item}", "{item}", "{item}"),
        ("two\nlines\x1b[31m", "two\nlines\x1b[31m", "two lines [31m"),
    ],
)
def test_an_item_may_be_any_json_value(item: Any, text: str, label: str):
    (task,) = unfold(over([item])).tasks

    assert (task.description, task.inputs, task.label) == (f"look at {text}", {"item": item}, label)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_a_label_is_short_and_one_line_of_what_can_be_printed(item: object):
    label = label_of(item)

    assert len(label) <= MAX_LABEL
    assert label.isprintable()


def test_items_that_would_be_called_the_same_are_told_apart():
    assert [task.label for task in unfold(over(["a", "b", "a", ""])).tasks] == ["a (1)", "b", "a (3)", "(4)"]


@guards(
    "libs/protocol/muster_protocol/unfold.py",
    "if wrong is not None:",
    rule="I10",
    replace="if False:",
    case="look at {item} and {itm}-nothing has the name {itm}",
)
@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("look at it", "{item} stands nowhere"),
        ("look at {{item}}", "{item} stands nowhere"),
        ("look at {item} and {itm}", "nothing has the name {itm}"),
        ("look at {item.name} and {Item}", "nothing has the name {Item}"),
    ],
)
def test_a_template_that_would_do_the_wrong_work_is_refused_by_the_name(description: str, reason: str):
    with pytest.raises(Invalid, match="template") as refused:
        over(CITIES, description)

    assert reason in str(refused.value)
    assert refused.value.where == "map"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("item.nmae", "{item.nmae}, but there is only at, name, tags"),
        ("item.name.x", '{item.name.x}, but it is "Rome", which has no fields'),
        ("item.tags.3", "{item.tags.3}, but it is a list of 1"),
    ],
)
def test_a_field_that_an_item_lacks_is_named_with_the_item(name: str, reason: str):
    rome = CITIES[::-1]
    with pytest.raises(Invalid) as refused:
        unfold(over(rome, f"look at {{{name}}}"))

    assert str(refused.value).startswith("map.items.0: ")
    assert reason in str(refused.value)


def test_braces_that_are_no_names_stay_as_they_are():
    schema = {"type": "string", "pattern": "^{letters}$"}
    (task,) = unfold(over(["x"], '{"output": {"to": "{item}"}}', expected_output=schema)).tasks

    assert (task.description, task.expected_output) == ('{"output": {"to": "x"}}', schema)


def test_the_item_itself_cannot_be_replaced_among_the_inputs():
    with pytest.raises(Invalid, match=r"template\.inputs\.item"):
        over(["x"], inputs={"item": "another"})


def test_what_becomes_gigabytes_is_refused_before_it_is_written():
    with pytest.raises(Invalid, match=r"^map: unfolds to .* characters; the most is 33,554,432"):
        unfold(over(["y" * 10_000] * 100, "{item}" * 10_000))
