"""A wait ends when its condition holds, or fails and names the condition."""

import pytest

from muster_testing import until, until_asked


async def test_a_wait_ends_when_its_condition_holds():
    answers = iter([False, False, True])

    await until(lambda: next(answers), "the third answer")

    assert list(answers) == []


async def test_a_wait_that_takes_too_long_names_its_condition():
    async def never() -> bool:
        return False

    with pytest.raises(AssertionError, match=r"not within 0\.05 s: the moon is blue"):
        await until_asked(never, "the moon is blue", within=0.05)
