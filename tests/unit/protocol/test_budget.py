"""I9: what the supervisor's own model calls may cost is set aside, settled, and charged when an owner dies."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.fold import left_of
from muster_protocol.messages import COMPOSE, PLAN, Budget, Reservation, Reserved, Usage, refining
from tests.unit.protocol.invariants import assert_consistent
from tests.unit.protocol.log_builder import LogBuilder, failure, plan_entry, plan_of, result, revision, task


def aside(purpose: str, tokens: int | None = None, usd: float | None = None) -> Reserved:
    return Reserved(attempts=(), purpose=purpose, tokens=tokens, usd=usd)


def with_budget(budget: Budget) -> LogBuilder:
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("a"), task("b")), budget=budget))
    return log


def test_what_is_set_aside_is_settled_by_what_came_of_it():
    log = LogBuilder()
    log.take()
    log.own(aside(PLAN, tokens=900))
    assert log.state.tokens_set_aside == 900

    log.own(plan_entry(plan_of(task("a"))).model_copy(update={"usage": Usage(output_tokens=100)}))

    assert (log.state.tokens_set_aside, log.state.usage.tokens) == (0, 100)


def test_a_takeover_charges_what_was_set_aside_as_spent():
    log = with_budget(Budget(tokens=1000, usd=2))
    log.own(aside(COMPOSE, tokens=300, usd=0.5))

    log.take("s2", delivery=2)

    assert (log.state.usage.tokens, log.state.usage.usd, log.state.usage.model_calls) == (300, 0.5, 1)
    assert left_of(log.state) == (700, 1.5)
    assert log.state.purposes == {}


def test_the_newest_amount_for_a_purpose_counts_alone():
    log = with_budget(Budget(tokens=1000))
    log.own(aside(COMPOSE, tokens=300))

    log.own(aside(COMPOSE, tokens=500))

    assert left_of(log.state).tokens == 500


def test_no_more_is_granted_than_is_left():
    log = with_budget(Budget(tokens=1000, usd=1))
    log.own(aside(COMPOSE, tokens=700, usd=0.25))

    log.own(aside("review:1", tokens=700, usd=0.25))
    log.own(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60, tokens=100, usd=0.25),)))

    assert log.state.purposes["review:1"] == (300, 0.25)
    assert log.state.tasks["a"].attempts == [], "nothing is left for it"


def test_a_revision_that_comes_too_late_still_costs_what_its_model_was_paid():
    log = with_budget(Budget(tokens=1000))
    log.run(failure("a"))
    log.own(aside(refining("a", 2), tokens=300))
    log.work(result("a", worker="w2"))

    log.own(revision("a", 2).model_copy(update={"usage": Usage(input_tokens=40)}))

    assert (log.state.usage.tokens, log.state.tokens_set_aside) == (40, 0)


@dataclass
class Spender:
    """An owner that pays for calls, crashes at any moment, and is followed by another."""

    budget: int
    spent: int = 0
    log: LogBuilder = field(default_factory=LogBuilder)

    def __post_init__(self) -> None:
        self.log.take()
        self.log.own(plan_entry(plan_of(task("a"), task("b")), budget=Budget(tokens=self.budget)))

    def call(self, purpose: str, wanted: int, share: float) -> int:
        """Reserve, then spend no more than what was granted."""
        self.log.own(aside(purpose, tokens=wanted))
        cost = int((self.log.state.purposes[purpose].tokens or 0) * share)
        self.spent += cost
        return cost


steps = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", COMPOSE, "attempt")),
        st.integers(0, 400),
        st.floats(0, 1),
        st.sampled_from(("settled", "crash", "crash before the call")),
    ),
    max_size=12,
)


@given(st.integers(0, 1000), steps)
def test_i9_no_crash_lets_a_request_spend_more_than_its_budget(budget: int, steps: list[tuple[str, int, float, str]]):
    spender = Spender(budget)
    log = spender.log
    for delivery, (what, wanted, share, end) in enumerate(steps, 2):
        if what == "attempt":
            reservation = Reservation(task_id="a", attempt=1, timeout_seconds=60, tokens=wanted)
            log.own(Reserved(attempts=(reservation,)))
        else:
            purpose = what if what == COMPOSE else refining(what, 2)
            cost = spender.call(purpose, wanted, 0.0 if end == "crash before the call" else share)
            if end == "settled" and what != COMPOSE:
                log.own(revision(what, 2).model_copy(update={"usage": Usage(output_tokens=cost)}))
        if end != "settled":
            log.take("s1", delivery)
        assert spender.spent <= log.state.usage.tokens + log.state.tokens_set_aside <= max(budget, 0)
        assert_consistent(log.state)
