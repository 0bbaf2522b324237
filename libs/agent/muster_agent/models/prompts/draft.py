"""The schema of a plan as a model writes it: the fields that a strict schema can describe."""

from pydantic import BaseModel, ConfigDict, Field

from muster_protocol.plan import Aggregation


class TaskDraft(BaseModel):
    """One task of a plan, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="short and unique, such as research-aws: letters, digits, - and _")
    description: str = Field(description="one complete piece of work, understandable without the request")
    tag: str = Field(description="one of the listed tags")
    dependencies: list[str] = Field(description="ids of the tasks whose outputs this one needs; often empty")
    expected_output: str = Field(description="what a good output looks like")


class PlanDraft(BaseModel):
    """A plan, as a model writes it: the fields that a strict schema can describe."""

    model_config = ConfigDict(extra="forbid")

    goal: str
    tasks: list[TaskDraft]
    aggregation: Aggregation
    final_instruction: str = Field(description="how the outputs become one answer")
