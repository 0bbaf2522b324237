"""Which of the roles that match gets an attempt."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.workers.measured import Measured
from muster_supervisor.choosing.choose import Choice, choose

ROLES = ("good", "bad")
SEEDS = range(25)
LEARNT = 50  # tasks, after which the choice is judged


class Shop:
    """Two roles that succeed as often as they are told to, and a supervisor that learns of it."""

    def __init__(self, seed: int, **rates: float) -> None:
        self.chance = random.Random(seed)
        self.seed, self.rates, self.number = seed, rates, 0
        self.seconds = dict.fromkeys(rates, 1.0)
        self.known = dict.fromkeys(rates, Measured())

    def run(self, tasks: int) -> Counter[str]:
        """How many of so many tasks each role got."""
        got: Counter[str] = Counter()
        for _ in range(tasks):
            self.number += 1
            attempt = AttemptId(f"r{self.seed}", f"t{self.number}", 1)
            role = choose(attempt, tuple(self.rates), (), self.known.__getitem__, self.number).role
            got[role] += 1
            is_done = self.chance.random() < self.rates[role]
            seen = Measured(tries=1, successes=float(is_done), seconds=self.seconds[role], at=self.number)
            self.known[role] = self.known[role].plus(seen)
        return got


@pytest.mark.parametrize("seed", SEEDS)
def test_after_fifty_tasks_the_better_role_gets_four_fifths_and_the_other_a_twentieth(seed: int):
    shop = Shop(seed, good=0.9, bad=0.5)
    shop.run(LEARNT)

    got = shop.run(400)

    assert got["good"] >= 0.8 * 400, got
    assert got["bad"] >= 0.05 * 400, got


@pytest.mark.parametrize("seed", SEEDS)
def test_a_role_that_recovers_comes_back_although_the_other_is_as_good_as_before(seed: int):
    shop = Shop(seed, good=0.9, bad=0.1)
    shop.run(200)

    shop.rates["bad"] = 1.0
    shop.run(600)

    assert shop.run(200)["bad"] > 80


def test_of_two_roles_that_succeed_as_often_the_quicker_gets_more_and_the_other_some():
    shop = Shop(1, good=0.9, bad=0.9)
    shop.seconds["bad"] = 4.0
    shop.run(LEARNT)

    got = shop.run(400)

    assert 400 > got["good"] > 0.8 * 400


def test_roles_of_which_nothing_is_known_take_turns():
    got = [choose(AttemptId("r1", f"t{n}", 1), ROLES, (), lambda _: Measured(), n).role for n in range(6)]

    assert got == ["good", "bad"] * 3


def test_a_role_that_failed_at_the_task_comes_after_one_that_did_not():
    known: Callable[[str], Measured] = {
        "good": Measured(tries=20, successes=20, seconds=20),
        "bad": Measured(tries=20, successes=0, seconds=20),
    }.__getitem__

    assert choose(AttemptId("r1", "t1", 2), ROLES, ("good",), known) == Choice("bad", "good failed before")
    assert choose(AttemptId("r1", "t1", 3), ROLES, ("good", "bad"), known).role in ROLES


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1)), min_size=1, max_size=5), st.integers(1, 9))
def test_the_same_attempt_and_measures_give_the_same_role_with_a_reason(roles: list[tuple[float, float]], number: int):
    known = {f"r{n}": Measured(tries=tries, successes=tries * rate) for n, (tries, rate) in enumerate(roles)}
    attempt = AttemptId("r1", "t1", number)

    first, second = (choose(attempt, tuple(known), (), known.__getitem__) for _ in range(2))

    assert first == second
    assert first.role in known
    assert first.why
