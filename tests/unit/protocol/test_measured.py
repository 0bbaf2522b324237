"""What is measured of a role: the newer counts more, and nothing is more than what was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Failure, Result, ResultStatus, Usage
from muster_protocol.workers.measured import HALF_LIFE_SECONDS, MEMORY, Measured, is_measured

AT = 1_700_000_000.0
counts = st.floats(0, 1000)


def result(status: ResultStatus = ResultStatus.DONE, error: Failure | None = None) -> Result:
    usage = Usage(input_tokens=30, output_tokens=10, usd=0.25, model_calls=1)
    return Result(
        request_id="r1",
        task_id="t1",
        attempt=1,
        status=status,
        error=error,
        worker="w1",
        role="work",
        usage=usage,
        seconds=2.0,
    )


@st.composite
def measured(draw: st.DrawFn) -> Measured:
    tries = draw(counts)
    part = draw(st.floats(0, 1))
    return Measured(
        tries=tries, successes=tries * part, seconds=draw(counts), usd=draw(counts), at=draw(st.floats(1, 1e9))
    )


def test_a_try_is_counted_with_its_time_and_cost():
    once = Measured.of(result(), AT)
    twice = once.plus(Measured.of(result(ResultStatus.FAILED), AT))

    assert (once.success_rate, once.mean_seconds, once.mean_tokens, once.mean_usd) == (1, 2, 40, 0.25)
    assert (twice.tries, twice.success_rate, twice.mean_seconds, twice.mean_usd) == (2, 0.5, 2, 0.25)
    assert Measured().success_rate is None


@given(measured(), measured())
def test_no_sum_weighs_more_than_the_memory_and_no_role_succeeds_more_often_than_it_tries(one: Measured, two: Measured):
    both = one.plus(two)

    assert both.tries <= max(MEMORY, one.tries) + 1e-6
    assert -1e-6 <= both.successes <= both.tries + 1e-6
    assert both.at == (max(one.at, two.at) if two.tries else one.at)


@given(st.integers(0, 200))
def test_a_role_that_recovers_is_known_as_good_after_two_memories_of_successes_whatever_it_did_before(failures: int):
    known = Measured()
    for _ in range(failures):
        known = known.plus(Measured.of(result(ResultStatus.FAILED), AT))
    for _ in range(2 * int(MEMORY)):
        known = known.plus(Measured.of(result(), AT))

    assert (known.success_rate or 0) > 0.85


def test_what_was_added_one_by_one_is_nearly_what_was_added_at_once():
    good, bad = Measured.of(result(), AT), Measured.of(result(ResultStatus.FAILED), AT)
    by_one = Measured()
    for number in range(20):
        by_one = by_one.plus(bad if number % 4 else good)

    batch = Measured(tries=20, successes=5, seconds=40, input_tokens=600, output_tokens=200, usd=5, at=AT)
    assert by_one == batch


def test_half_of_its_weight_is_gone_after_the_half_life():
    known = Measured.of(result(), AT)

    assert known.faded(AT + HALF_LIFE_SECONDS).tries == pytest.approx(0.5)
    assert known.faded(AT + HALF_LIFE_SECONDS).success_rate == 1
    assert known.faded(AT - 5) == known


@pytest.mark.parametrize(("error_class", "expected"), [("logic", True), ("timeout", True), ("input", False)])
def test_a_failure_that_is_not_the_role_s_is_not_measured(error_class: str, expected: bool):
    error = Failure.model_validate({"class": error_class, "message": "it failed"})

    assert is_measured(result(ResultStatus.FAILED, error)) is expected
    assert not is_measured(result(ResultStatus.CANCELLED))
