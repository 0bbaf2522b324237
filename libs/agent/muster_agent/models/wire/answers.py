"""What the errors of a provider mean, whichever package met them."""

import time
from collections.abc import Mapping

from muster_agent.errors import KeyRefused, ModelAway, NotPaid, RateLimited
from muster_protocol.calling.retry_after import asked_seconds
from muster_protocol.errors import MusterError, Terminal


def no_answer(model: str, host: str, error: object) -> ModelAway:
    return ModelAway(f"{model}: no answer from {host}: {error}")


def not_paid(model: str, reason: str) -> NotPaid:
    return NotPaid(f"{model}: not paid for: {reason}; check the account's billing and its spend limit")


def refusal_of(model: str, status: int, reason: str, headers: Mapping[str, str], key: str) -> MusterError:
    """The error that a status means; `key` is where the key comes from."""
    if status in (408, 409, 429) or status >= 500:
        kind = RateLimited if status == 429 else ModelAway
        return kind(f"{model} is busy or limited ({status}): {reason}", retry_after(headers))
    if status in (401, 403):
        way_out = f"check {key} and what the key may use, or set model: offline"
        return KeyRefused(f"{model}: the key was refused ({status}): {reason}; {way_out}")
    if status == 404:
        return Terminal(f"{model}: not found ({status}): {reason}; check the model's name in the team file")
    if status == 402:
        return not_paid(model, reason)
    return Terminal(f"{model} refuses the request ({status}): {reason}; see `tools` and limits in the team file")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks for; None if it does not, or nothing that can be read."""
    now, date = time.time(), headers.get("date")
    milliseconds = asked_seconds(headers.get("retry-after-ms"), date, now)
    return asked_seconds(headers.get("retry-after"), date, now) if milliseconds is None else milliseconds / 1000
