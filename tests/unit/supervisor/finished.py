"""Logs of requests that are planned, or whose tasks have given their outputs."""

from muster_protocol.fold import RequestState
from muster_protocol.messages import Output
from muster_protocol.plan import Aggregation, TaskSpec
from tests.unit.protocol.log_builder import Journal, plan_entry, plan_of, result, task


def planned(*tasks: TaskSpec, aggregation: Aggregation = "merge") -> Journal:
    journal = Journal()
    journal.take()
    plan = plan_of(*tasks).model_copy(update={"aggregation": aggregation, "final_instruction": "be brief"})
    journal.own(plan_entry(plan))
    return journal


def finished(outputs: dict[str, Output], aggregation: Aggregation = "merge") -> RequestState:
    journal = planned(*map(task, outputs), aggregation=aggregation)
    for task_id, output in outputs.items():
        journal.run(result(task_id).model_copy(update={"output": output}))
    return journal.state
