"""What a model says about a failed task: a better description, or that no words can mend it."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class RefineDraft(BaseModel):
    """The reply of a model that was asked to describe a failed task better."""

    model_config = ConfigDict(extra="forbid")

    can_be_mended: bool = Field(description="false if no description of the task could avoid this error")
    description: str = Field(description="the whole new description; empty if words cannot mend it")
    reason: str = Field(description="what was changed and why, or why words cannot mend it; one sentence")


def refined(text: str) -> RefineDraft:
    """The reply as it was meant: rules and plain models write the new description alone."""
    try:
        return RefineDraft.model_validate_json(text)
    except ValidationError:
        return RefineDraft(can_be_mended=True, description=text, reason="")
