"""I5: a task starts when its own dependencies are done, not when its layer is."""

from muster_protocol.messages import AnswerStatus
from tests.guards import guards
from tests.harness import Muster


@guards(
    "libs/protocol/muster_protocol/fold/moves.py",
    "if task.missing == task.lost:",
    rule="I5",
    replace="if task.missing == task.lost and state.in_flight == 0:",
)
async def test_a_chain_goes_on_beside_a_task_of_the_first_layer_that_has_not_ended(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit(
        [
            {"id": "held", "orders": {"until": "go"}},
            {"id": "one"},
            {"id": "two", "dependencies": ["one"]},
            {"id": "three", "dependencies": ["two"]},
        ]
    )
    await muster.until(lambda: muster.executions(request)["three"] == 1, "the chain ends while the first layer runs")
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert [line["task"] for line in muster.traces("end")][-1] == "held"
