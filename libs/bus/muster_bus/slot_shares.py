"""How the free slots of a process are shared among its consumers."""

from collections.abc import Sequence


def shares(free: int, weights: Sequence[int], first: int) -> list[int]:
    """Share `free` slots among consumers by weight, beginning with `first`; nobody waits for ever for a share."""
    count = len(weights)
    shared = [0] * count
    order = [(first + offset) % count for offset in range(count)]
    total = sum(weights)
    for index in order:
        shared[index] = free * weights[index] // total
    left = free - sum(shared)
    for index in order:
        if left == 0:
            break
        if shared[index] == 0:
            shared[index] += 1
            left -= 1
    for index in order:
        take = 1 if left else 0
        shared[index] += take
        left -= take
    return shared
