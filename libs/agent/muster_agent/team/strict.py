"""A value of a team file: whatever its file says that nothing reads is an error."""

from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Strict(BaseModel):
    """A value in which an unknown key, an endless number, or true for a number is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_numbers(cls, value: object, field: ValidationInfo) -> object:
        kind = cls.model_fields[str(field.field_name)].annotation
        if isinstance(value, bool) and bool not in (kind, *get_args(kind)):
            raise ValueError(f"cannot be {str(value).lower()}; put it in quotes if it is meant as text")
        return value
