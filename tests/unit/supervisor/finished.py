"""Logs of requests that are planned, or whose tasks have given their outputs."""

from muster_protocol.fold import RequestState
from muster_protocol.messages import Output
from muster_protocol.plan import Aggregation, TaskSpec
from tests.unit.protocol.log_builder import LogBuilder, plan_entry, plan_of, result, task


def planned(*tasks: TaskSpec, aggregation: Aggregation = "merge") -> LogBuilder:
    log = LogBuilder()
    log.take()
    plan = plan_of(*tasks).model_copy(update={"aggregation": aggregation, "final_instruction": "be brief"})
    log.own(plan_entry(plan))
    return log


def finished(outputs: dict[str, Output], aggregation: Aggregation = "merge") -> RequestState:
    log = planned(*map(task, outputs), aggregation=aggregation)
    for task_id, output in outputs.items():
        log.run(result(task_id).model_copy(update={"output": output}))
    return log.state
