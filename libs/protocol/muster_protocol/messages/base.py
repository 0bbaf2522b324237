"""What every message is, and the values that several of them carry."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError

from muster_protocol.errors import Invalid
from muster_protocol.messages.wrong import reason_of
from muster_protocol.plan import Frozen
from muster_protocol.sender import Origin

Output = Any  # what a role returned: JSON
MOST = 10**12  # of anything that is added up, so that no sum overflows


class Message(Frozen):
    """What travels. It knows its subject, its id and the fields that are also written as headers."""

    kind: ClassVar[str]
    schema_version: ClassVar[int] = 1
    free_text: ClassVar[tuple[str, ...]] = ()  # paths of what roles, models and people wrote: no secret may be in it

    @abstractmethod
    def subject_for(self, origin: Origin) -> str:
        """The subject that it is published on."""

    @abstractmethod
    def id_for(self, origin: Origin) -> str:
        """Its message id: the broker stores it at most once per window. Empty: a repeated write may store it twice."""

    def summary_headers(self) -> dict[str, str]:
        """The few fields that watchers count, as headers."""
        return {}

    def body(self) -> bytes:
        """As it travels: JSON, without what a reader supplies, so that a long plan or answer stays short."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_defaults=True)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Parse a body, or say which field is wrong."""
        try:
            return cls.__pydantic_validator__.validate_json(body)
        except ValidationError as error:
            raise invalid(error) from None

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        """The message with these fields, or the field that is wrong."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise invalid(error) from None


def invalid(error: ValidationError) -> Invalid:
    """What pydantic found first, in our words."""
    first = error.errors(include_url=False, include_input=False)[0]
    return Invalid(reason_of(first), ".".join(str(part) for part in first["loc"]))


class Usage(Frozen):
    """What work cost."""

    input_tokens: int = Field(default=0, ge=0, le=MOST)
    output_tokens: int = Field(default=0, ge=0, le=MOST)
    usd: float = Field(default=0.0, ge=0, le=MOST)
    model_calls: int = Field(default=0, ge=0, le=MOST)
    cache_read_tokens: int = Field(default=0, ge=0, le=MOST)  # of the tokens in: those that a cache had …
    cache_write_tokens: int = Field(default=0, ge=0, le=MOST)  # … and those that were put into it

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        if not (other.input_tokens or other.output_tokens or other.usd or other.model_calls):
            return self  # most results of plain functions cost nothing, and the fold adds every one of them
        return Usage(
            input_tokens=min(MOST, self.input_tokens + other.input_tokens),
            output_tokens=min(MOST, self.output_tokens + other.output_tokens),
            usd=min(MOST, self.usd + other.usd),
            model_calls=min(MOST, self.model_calls + other.model_calls),
            cache_read_tokens=min(MOST, self.cache_read_tokens + other.cache_read_tokens),
            cache_write_tokens=min(MOST, self.cache_write_tokens + other.cache_write_tokens),
        )

    def beyond(self, other: "Usage") -> "Usage":
        """What this has more than the other."""
        return Usage(
            input_tokens=max(0, self.input_tokens - other.input_tokens),
            output_tokens=max(0, self.output_tokens - other.output_tokens),
            usd=max(0.0, self.usd - other.usd),
            model_calls=max(0, self.model_calls - other.model_calls),
        )

    def at_least(self, other: "Usage") -> "Usage":
        """The larger one of each."""
        return Usage(
            input_tokens=max(self.input_tokens, other.input_tokens),
            output_tokens=max(self.output_tokens, other.output_tokens),
            usd=max(self.usd, other.usd),
            model_calls=max(self.model_calls, other.model_calls),
        )
