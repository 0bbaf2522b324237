"""What a team file says about the limits of a provider of models."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from muster_protocol.workers.rate_limits import WINDOW_SECONDS, Limits, scaled


class RateLimits(BaseModel):
    """The most that all processes of the team together ask of one provider. What is not set has no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    requests_per_minute: int | None = Field(default=None, ge=1, le=10_000_000)
    tokens_per_minute: int | None = Field(default=None, ge=1, le=100_000_000_000)  # read and written
    max_concurrent: int | None = Field(default=None, ge=1, le=10_000)  # calls under way at once
    window_seconds: float = Field(default=WINDOW_SECONDS, ge=1, le=3600)  # in which the provider counts

    @model_validator(mode="after")
    def _check_rates(self) -> Self:
        limits = self.limits
        if 0 in (limits.requests, limits.tokens):
            raise ValueError(f"allows not one in {self.window_seconds:g} s; raise the limit or window_seconds")
        return self

    @property
    def limits(self) -> Limits:
        """In windows of the provider's length, each with its part of the minute."""
        whole = Limits(self.requests_per_minute, self.tokens_per_minute, self.max_concurrent)
        return scaled(whole, self.window_seconds)
