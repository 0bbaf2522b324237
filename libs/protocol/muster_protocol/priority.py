"""How urgent a request is; its tasks travel in the lane of that name."""

from typing import Literal, get_args

Priority = Literal["high", "normal", "low"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first
