"""Whole requests with random workers, clocks, crashes and several owners: `due` keeps limits and brings an answer."""

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster_protocol.fold import FINAL, Entry, RequestState, TaskPhase, apply, fold, pending_growth
from muster_protocol.messages import AnswerStatus, Budget, Extended, LogBody, PlanRecorded, Result, Taken
from muster_protocol.plan import Plan
from muster_supervisor.decide import DispatchTasks, Step, due, next_time
from tests.unit.protocol.arbitrary import bodies, logs, plans
from tests.unit.protocol.invariants import CLOSE, assert_consistent, cannot_begin, has_enough, known_at
from tests.unit.protocol.log_builder import FAR, REQUEST, START, plan_entry
from tests.unit.supervisor.fake_broker import ALLOWANCE, OUTCOMES, FakeBroker, Owner, Superseded, outcome

Outcomes = tuple[str, ...] | Callable[[tuple[str, int]], str]


def assert_within_limits(state: RequestState, plan_entry: PlanRecorded, step: DispatchTasks) -> None:
    assert state.in_flight + len(step.attempts) <= plan_entry.in_flight
    assert len({reservation.task_id for reservation in step.attempts}) == len(step.attempts)
    for reservation in step.attempts:
        task = state.tasks[reservation.task_id]
        assert has_enough(task, [state.tasks[need] for need in dict.fromkeys(task.spec.dependencies)])
        assert reservation.attempt == len(task.attempts) + 1
        assert reservation.timeout_seconds > 0
    tokens = state.usage.tokens + state.tokens_set_aside + sum(r.tokens or 0 for r in step.attempts)
    usd = state.usage.usd + state.usd_set_aside + sum(r.usd or 0.0 for r in step.attempts)
    assert plan_entry.budget.tokens is None or tokens <= plan_entry.budget.tokens
    assert plan_entry.budget.usd is None or usd <= plan_entry.budget.usd + CLOSE


def assert_never_stuck(state: RequestState, now: float) -> None:
    """If nothing is due and there is no answer, a timer or a result will wake the owner, and not before its time."""
    if due(state, now, ALLOWANCE) or state.answer is not None:
        return
    wake = next_time(state)
    assert state.in_flight or wake is not None
    assert wake is None or wake > now


budgets = st.builds(
    Budget, tokens=st.none() | st.integers(0, 60), usd=st.none() | st.floats(0, 1).map(lambda usd: round(usd, 2))
)
plans_made = st.builds(
    plan_entry, plans(), in_flight=st.integers(1, 4), budget=budgets, deadline=st.sampled_from((START + 60, FAR))
)


plans_held = st.builds(
    plan_entry, plans(), in_flight=st.integers(1, 4), deadline=st.sampled_from((START + 60, FAR)), approve=st.just(True)
)


class OneRequest(RuleBasedStateMachine):
    """Supervisors crash and take over; workers finish in any order, twice or never; the log gets foreign entries."""

    @initialize(plan_entry=plans_made | plans_held, turns=st.integers(0, 9))
    def begin(self, plan_entry: PlanRecorded, turns: int) -> None:
        self.broker = FakeBroker(plan_entry)
        self.owners: list[Owner] = []
        self.count = 0
        self.take()
        for _ in range(turns):
            self.act(self.owners[0], 9)
            for key in self.broker.unfinished()[:1]:
                self.broker.finish(key, outcome(key, "failed" if turns % 3 == 2 else "done"))
            self.owners[0].read()
            self.broker.now += 0.3

    def take(self) -> None:
        self.count += 1
        self.owners = [*self.owners[-2:], Owner(self.broker, f"s{self.count}").take()]

    def act(self, owner: Owner, most: int, *, crashes: bool = False) -> None:
        for step in owner.due()[:most]:
            if isinstance(step, DispatchTasks):
                assert_within_limits(owner.state, self.broker.plan_entry, step)
            try:
                owner.carry_out(step, crash_after_reserving=crashes)
            except Superseded:
                self.owners.remove(owner)
                return

    @rule(which=st.integers(0, 2), most=st.integers(1, 4), is_blind=st.integers(0, 4), outcome=st.integers(0, 6))
    def an_owner_acts(self, which: int, most: int, is_blind: int, outcome: int) -> None:
        """It carries out the first few steps of what it knows, which may be old, and may crash between any two."""
        if not self.owners:
            self.take()
        owner = self.owners[which % len(self.owners)]
        if is_blind < 4:
            owner.read()
        self.act(owner, most, crashes=outcome == 6)
        if outcome >= 5 and owner in self.owners:
            self.owners.remove(owner)

    @rule(which=st.integers(0, 20), how=st.sampled_from(OUTCOMES), is_late=st.integers(0, 4))
    def a_worker_finishes(self, which: int, how: str, is_late: int) -> None:
        """In any order; sometimes an attempt that is finished already or has expired."""
        keys = sorted(self.broker.queue if is_late == 4 else self.broker.unfinished())
        if keys:
            key = keys[which % len(keys)]
            self.broker.finish(key, outcome(key, how, worker=f"w{which % 2}"))

    @rule(seconds=st.sampled_from((0.1, 1.0, 1.0, 30.0, 70.0)))
    def time_passes(self, seconds: float) -> None:
        self.broker.now += seconds

    @rule(which=st.integers(0, 2), choice=st.sampled_from(("approve", "approve", "edit", "reject")), plan=plans(2))
    def a_person_replies(self, which: int, choice: str, plan: Plan) -> None:
        """An owner copies it, whatever it knows; another may have copied another reply."""
        if self.owners:
            owner = self.owners[which % len(self.owners)]
            with suppress(Superseded):
                owner.copy_reply(choice, plan if choice == "edit" else None)

    @rule(
        which=st.integers(0, 20), kind=st.sampled_from(("retry", "retry", "reassign")), sequence=st.integers(100, 110)
    )
    def a_person_speaks_of_a_task(self, which: int, kind: Literal["retry", "reassign"], sequence: int) -> None:
        """An owner copies it, whatever it knows; the same or another may copy it again."""
        if not self.owners:
            return
        owner = self.owners[which % len(self.owners)]
        names = sorted(owner.state.tasks)
        if names and owner.state.answer is None:
            with suppress(Superseded):
                owner.copy_order(kind, names[which % len(names)], sequence)

    @rule(kind=st.sampled_from(("takeover", "takeover", "noise", "noise", "noise", "cancel")), body=bodies)
    def something_interferes(self, kind: str, body: LogBody) -> None:
        if kind == "takeover":
            self.take()
        elif kind == "noise" and not isinstance(body, Result | Taken):
            self.broker.append("client/c1", body, term=self.owners[-1].term if self.owners else 0)
            self.broker.append("supervisor/gone", body, term=-1)
        elif kind == "cancel" and self.owners and len(self.broker.log) % 3 == 0:
            with suppress(Superseded):
                self.owners[-1].cancel()

    @invariant()
    def everybody_folds_the_log_to_the_same_state(self) -> None:
        whole = fold(REQUEST, self.broker.log)
        assert_consistent(whole)
        for owner in self.owners:
            known = copy.deepcopy(owner.state)
            for entry in self.broker.log:
                apply(known, entry)
            assert known_at(known, self.broker.now) == known_at(fold(REQUEST, self.broker.log), self.broker.now)

    @invariant()
    def a_rebuilt_owner_would_do_the_same(self) -> None:
        for owner in self.owners:
            rebuilt = fold(REQUEST, [e for e in self.broker.log if e.sequence <= owner.state.last_sequence])
            now = self.broker.now
            assert due(owner.state, now, ALLOWANCE) == due(owner.state, now, ALLOWANCE)
            assert comparable(due(rebuilt, now, ALLOWANCE)) == comparable(due(owner.state, now, ALLOWANCE))
            assert_never_stuck(rebuilt, now)

    @invariant()
    def no_attempt_is_published_before_its_dependencies_have_given_enough(self) -> None:
        state = fold(REQUEST, self.broker.log)
        for task_id, attempt in self.broker.queue:
            task = state.tasks[task_id]
            assert 1 <= attempt <= len(task.attempts)
            assert has_enough(task, [state.tasks[need] for need in dict.fromkeys(task.spec.dependencies)])

    @invariant()
    def i2_each_cause_grew_the_plan_once(self) -> None:
        """Whatever was written how often: the tasks of a cause are those of the first entry that counted."""
        state = RequestState(REQUEST)
        grown: set[str] = set()
        for entry in self.broker.log:
            before, pending = set(state.tasks), pending_growth(state)
            apply(state, entry)
            if isinstance(entry.body, Extended) and state.tasks.keys() > before:
                assert entry.body.cause in pending
                assert entry.body.cause not in grown
                assert state.tasks.keys() - before == {spec.id for spec in entry.body.add}
                grown.add(entry.body.cause)

    def teardown(self) -> None:
        """After any of this, one owner and workers without errors bring the request to its one answer."""
        if not hasattr(self, "broker"):
            return
        self.broker.deliveries += 1
        owner = Owner(self.broker, "last").take()
        drive(owner, random.Random(0), ("done",))
        assert owner.state.answer is not None
        assert sum(entry.body.kind == "answer" and is_counted(entry, self.broker) for entry in self.broker.log) == 1


def comparable(steps: list[Step]) -> tuple[object, ...]:
    """Which of several ready tasks come first depends on when they were seen to be ready; how many does not."""
    dispatches = [len(step.attempts) for step in steps if isinstance(step, DispatchTasks)]
    others = {step for step in steps if not isinstance(step, DispatchTasks)}
    return dispatches, others


def is_counted(entry: Entry, broker: FakeBroker) -> bool:
    return fold(REQUEST, broker.log).answer is entry.body


def drive(owner: Owner, chance: random.Random, outcomes: Outcomes, *, loses: float = 0.0) -> None:
    """Supervise a request until it is answered; some attempts get no result; time passes if nothing else is left."""
    lost: set[tuple[str, int]] = set()
    for _ in range(1_000):
        if owner.state.answer is not None:
            return
        for step in owner.due():
            if isinstance(step, DispatchTasks):
                assert_within_limits(owner.state, owner.broker.plan_entry, step)
            owner.carry_out(step)
        assert_never_stuck(owner.state, owner.broker.now)
        unfinished = [key for key in owner.broker.unfinished() if key not in lost]
        if unfinished:
            key = chance.choice(unfinished)
            if chance.random() < loses:
                lost.add(key)
            else:
                owner.broker.finish(key, outcome(key, outcomes(key) if callable(outcomes) else chance.choice(outcomes)))
        elif not due(owner.state, owner.broker.now, ALLOWANCE):
            wake = next_time(owner.state)
            assert wake is not None or owner.state.answer is not None
            owner.broker.now = max(owner.broker.now, wake or 0.0)
        owner.read()
    raise AssertionError("no answer after a thousand turns")


TestOneRequest = OneRequest.TestCase
TestOneRequest.settings = settings(max_examples=40, stateful_step_count=25)
moderately = settings(max_examples=50)


@given(plans(most=12), st.integers(1, 4), st.randoms(use_true_random=False))
@moderately
def test_whatever_workers_do_every_task_ends_and_an_answer_follows(plan: Plan, cap: int, chance: random.Random):
    owner = Owner(FakeBroker(plan_entry(plan, in_flight=cap)), "s1").take()

    drive(owner, chance, OUTCOMES, loses=0.2)

    state = owner.state
    done = [task.phase is TaskPhase.DONE for task in state.tasks.values()]
    assert all(task.phase in FINAL for task in state.tasks.values())
    assert state.answer is not None
    assert state.answer.status is (
        AnswerStatus.DONE if all(done) else AnswerStatus.PARTIAL if any(done) else AnswerStatus.FAILED
    )


@given(plans(most=12, may_grow=False), st.randoms(use_true_random=False))
@moderately
def test_what_does_not_depend_on_a_failure_is_done(plan: Plan, chance: random.Random):
    owner = Owner(FakeBroker(plan_entry(plan)), "s1").take()
    bad = chance.choice(plan.tasks).id

    def outcome(key: tuple[str, int]) -> str:
        return "final" if key[0] == bad else "done"

    drive(owner, chance, outcome)

    tasks = owner.state.tasks
    for task_id, task in tasks.items():
        needs = [tasks[need] for need in dict.fromkeys(task.spec.dependencies)]
        if task_id == bad:
            assert task.phase is TaskPhase.FAILED
        elif not cannot_begin(task, needs):
            assert task.phase is TaskPhase.DONE
        else:
            assert task.phase is TaskPhase.SKIPPED
            assert f"{bad} failed: boom" in (task.reason or "")


@given(plans_made, st.randoms(use_true_random=False))
@moderately
def test_i4_with_any_budget_and_deadline_an_answer_comes_in_time(plan_entry: PlanRecorded, chance: random.Random):
    owner = Owner(FakeBroker(plan_entry), "s1").take()

    drive(owner, chance, OUTCOMES, loses=0.5)

    assert owner.state.answer is not None
    assert owner.broker.now < plan_entry.deadline


@given(logs(), st.floats(0, 100))
@moderately
def test_for_any_log_something_will_wake_the_owner_of_an_unanswered_request(entries: list[Entry], later: float):
    state = RequestState(REQUEST)

    for entry in entries:
        apply(state, entry)
        assert_never_stuck(state, entry.time + later)
