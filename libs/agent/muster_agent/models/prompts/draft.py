"""What a model writes through a strict schema: a plan with all that it can say, its growth, and a judge's choice.

A strict schema has no open objects, so `inputs` and `output_schema` are JSON in a text. Fields that most tasks leave
out may be left out.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from muster_protocol.plan import Aggregation


class TaskDraft(BaseModel):
    """One task of a plan, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="short and unique, such as research-aws: letters, digits, - and _")
    description: str = Field(description="one complete piece of work, understandable without the request")
    tag: str = Field(description="a listed tag; empty where match_all, match_some or broadcast say who")
    dependencies: list[str] = Field(description="ids of the tasks whose outputs this one needs; often empty")
    expected_output: str = Field(description="what a good output looks like, in a sentence")
    match_all: list[str] = Field(default=[], description="instead of tag: a worker must have all of these tags")
    match_some: list[str] = Field(default=[], description="instead of tag: a worker must have one of these tags")
    broadcast: bool = Field(default=False, description="true: every worker that matches does the task, not just one")
    items: list[str] = Field(default=[], description="one task for each of these; {item} in the description")
    over: str = Field(default="", description="id of a task that gives a list: one task for each entry of it")
    worker: str = Field(default="", description="the name of the one worker that is to do it; almost always empty")
    gather: Literal["", "all", "done"] = Field(default="", description="how many dependencies must be done")
    at_least: int = Field(default=0, description="instead of gather: so many dependencies must be done")
    inputs: str = Field(default="", description="for a function: what it computes with, a JSON object as text")
    output_schema: str = Field(default="", description="a JSON Schema as text, if the output must be JSON")


class PlanDraft(BaseModel):
    """A plan, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    goal: str = Field(description="what the answer must achieve, with its language, format and audience")
    tasks: list[TaskDraft]
    aggregation: Aggregation = Field(description="how the final outputs become the answer")
    final_instruction: str = Field(description="how to write the answer, with its language, format and audience")


class ReviewDraft(BaseModel):
    """Whether the results are enough, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["finish", "more"]
    reason: str = Field(description="why, in one or two sentences for whoever made the request")
    tasks: list[TaskDraft] = Field(description="with more: the tasks that are still needed; with finish: empty")


class ReplaceDraft(BaseModel):
    """What becomes of what a failed task leaves, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["keep", "replace"]
    reason: str = Field(description="why, in one or two sentences for whoever made the request")
    drop: list[str] = Field(description="ids of skipped tasks whose work the new tasks do; with keep: empty")
    tasks: list[TaskDraft] = Field(description="with replace: what takes their place; with keep: empty")


class Choice(BaseModel):
    """Which output is the best, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    best: str = Field(description="one of the listed names")
    reason: str = Field(description="why, in one or two sentences")
