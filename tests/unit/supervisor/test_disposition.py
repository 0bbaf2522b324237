"""Messages with one id under any order of deliveries, kills and redeliveries: one answer, and no ack before it."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.messages import Answer, AnswerStatus, LogBody, Taken
from muster_supervisor.taking.disposition import (
    MAX_KEPT,
    OVERDUE_SECONDS,
    Disposition,
    Held,
    disposition,
    is_overdue,
    surplus,
)
from tests.guards import guards

DISPOSITION = "services/supervisor/muster_supervisor/taking/disposition.py"
HASHES = {1: "a", 2: "b", 3: "a"}  # of the messages: two with the same body, one with another
OWNER = "supervisor/s"


@dataclass
class Holder:
    """A supervisor with one delivery: what it has read of the log, and what it makes of it."""

    held: Held
    state: RequestState
    is_lease_stored: bool
    term: int = 0


@dataclass
class Broker:
    """A queue that delivers what is not acknowledged again, and a log with compare-and-set."""

    stored: dict[int, int] = field(default_factory=lambda: dict.fromkeys(HASHES, 0))  # message → deliveries
    entries: list[Entry] = field(default_factory=list[Entry])
    holders: list[Holder] = field(default_factory=list[Holder])

    @property
    def state(self) -> RequestState:
        return fold("r", self.entries)

    @property
    def answers(self) -> int:
        """Of an owner whose term it was, by the order of the log alone."""
        term = count = 0
        for entry in self.entries:
            if isinstance(entry.body, Taken):
                term = entry.sequence
            elif isinstance(entry.body, Answer) and entry.term == term:
                count += 1
        return count

    def write(self, body: LogBody, term: int = 0) -> int:
        sequence = len(self.entries) + 1
        self.entries.append(Entry(sequence, float(sequence), OWNER, term, body))
        return sequence

    def deliver(self, message: int) -> None:
        """Give a message to a supervisor, which reads the log; a former holder may live on and act late."""
        if message in self.stored:
            self.stored[message] += 1
            self.holders.append(self.look(Held(message, self.stored[message], HASHES[message])))

    def look(self, held: Held) -> Holder:
        state = self.state
        return Holder(held, state, state.request_sequence in self.stored)

    def act(self, holder: Holder) -> None:
        """The next thing that this supervisor does; it may have read the log long ago."""
        self.holders.remove(holder)
        if holder.term:
            self.answer(holder)
            return
        match disposition(holder.state, holder.held, is_lease_stored=holder.is_lease_stored):
            case Disposition.ANSWERED:
                assert self.answers == 1, "acknowledged without an answer"
                self.stored.pop(holder.held.sequence, None)
            case Disposition.KEPT:
                self.holders.append(self.look(holder.held))
            case Disposition.OURS | Disposition.INHERITED as found:
                self.take(holder, found)
            case Disposition.STALE:
                pass

    def take(self, holder: Holder, found: Disposition) -> None:
        if not holder.state.term and self.entries:
            self.holders.append(self.look(holder.held))  # the first `taken` is compare-and-set: lost
            return
        counted = holder.state.request_hash if found is Disposition.INHERITED else holder.held.request_hash
        taken = Taken(
            instance=f"s{len(self.entries)}",
            delivery=holder.held.number,
            team="t",
            deadline=9.0,
            request_hash=counted,
            request_sequence=holder.held.sequence,
        )
        holder.term = self.write(taken)
        holder.state = self.state
        self.holders.append(holder)

    def answer(self, holder: Holder) -> None:
        """Under its term, by compare-and-set; then the message is acknowledged."""
        if self.state.answer is None and self.state.term == holder.term:
            answer = Answer(request_id="r", status=AnswerStatus.DONE, text="", request_hash=self.state.request_hash)
            self.write(answer, holder.term)
        if self.state.answer is not None:
            self.stored.pop(holder.held.sequence, None)

    def settle(self) -> None:
        """No more faults: what is stored and held by nobody is delivered, and everybody acts."""
        for _ in range(20):
            holding = {holder.held.sequence for holder in self.holders}
            for message in set(self.stored) - holding:
                self.deliver(message)
            for holder in list(self.holders):
                self.act(holder)


STEPS = st.lists(st.tuples(st.sampled_from(["deliver", "act", "act", "kill", "purge"]), st.integers(0, 5)), max_size=40)


@guards(DISPOSITION, " if state.request_hash == held.request_hash else Disposition.INHERITED", rule="I1", replace="")
@given(STEPS)
def test_a_request_with_several_messages_gets_one_answer_and_nothing_is_acknowledged_before(
    steps: list[tuple[str, int]],
):
    broker = Broker()
    for step, number in steps:
        if step == "deliver":
            broker.deliver(number % 3 + 1)
        elif step == "purge" and len(broker.stored) == 3:
            broker.stored.pop(number % 3 + 1)  # by an operator; what is left must do
        elif broker.holders and step in ("act", "kill"):
            holder = broker.holders[number % len(broker.holders)]
            broker.act(holder) if step == "act" else broker.holders.remove(holder)
        assert broker.stored or broker.answers == 1
    broker.settle()

    assert broker.answers == 1
    assert not broker.stored
    counted = {entry.body.request_hash for entry in broker.entries if isinstance(entry.body, Taken | Answer)}
    assert len(counted) == 1


def led_by(sequence: int, delivery: int, *, handed_back: bool = False) -> RequestState:
    taken = Taken(instance="s1", delivery=delivery, team="t", deadline=9.0, request_hash="a", request_sequence=sequence)
    entries = [Entry(1, 1.0, OWNER, 0, taken)]
    if handed_back:
        entries.append(Entry(2, 2.0, OWNER, 1, taken.model_copy(update={"handed_back": True})))
    return fold("r", entries)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_request_that_nobody_has_taken_is_for_whoever_gets_a_message_of_it(is_stored: bool):
    for number in (1, 5):
        assert disposition(RequestState("r"), Held(7, number, "a"), is_lease_stored=is_stored) is Disposition.OURS


@guards(DISPOSITION, "if is_lease and state.owner is not None and state.delivery > held.number:", rule="I2")
def test_an_older_delivery_takes_nothing_from_the_holder_of_a_later_one():
    older, same = Held(1, 2, "a"), Held(1, 3, "a")

    assert disposition(led_by(1, 3), older, is_lease_stored=True) is Disposition.STALE
    assert disposition(led_by(1, 3), same, is_lease_stored=True) is Disposition.OURS
    assert disposition(led_by(1, 3, handed_back=True), older, is_lease_stored=True) is Disposition.OURS


@guards(DISPOSITION, "if not is_lease and is_lease_stored and not is_overdue:", rule="I2", case="a copy")
@pytest.mark.parametrize(
    ("held", "is_stored", "found"),
    [
        (Held(1, 9, "a"), True, Disposition.OURS),
        pytest.param(Held(2, 1, "a"), True, Disposition.KEPT, id="a copy"),
        (Held(2, 1, "b"), True, Disposition.KEPT),
        (Held(2, 1, "a"), False, Disposition.OURS),
        (Held(2, 1, "b"), False, Disposition.INHERITED),
    ],
)
def test_a_message_beside_the_lease_is_kept_while_the_lease_is_stored(held: Held, is_stored: bool, found: Disposition):
    assert disposition(led_by(1, 1), held, is_lease_stored=is_stored) is found


@guards(
    DISPOSITION,
    "if not is_lease and is_lease_stored and not is_overdue:",
    rule="I4",
    replace="if not is_lease and is_lease_stored:",
)
def test_a_copy_is_supervised_once_its_request_should_have_been_answered_long_ago():
    copy, other = Held(2, 1, "a"), Held(2, 1, "b")

    assert disposition(led_by(1, 1), copy, is_lease_stored=True, is_overdue=True) is Disposition.OURS
    assert disposition(led_by(1, 1), other, is_lease_stored=True, is_overdue=True) is Disposition.INHERITED
    assert not is_overdue(led_by(1, 1), 9.0 + OVERDUE_SECONDS)
    assert is_overdue(led_by(1, 1), 9.1 + OVERDUE_SECONDS)
    assert not is_overdue(RequestState("r"), 1e9)


@given(st.lists(st.sets(st.integers(1, 200), max_size=80), max_size=6))
def test_the_earliest_messages_of_an_open_request_are_put_back_by_nobody(holders: list[set[int]]):
    stored = set[int]().union(*holders)
    put_back = {sequence for held in holders for sequence in surplus(held)}

    assert set(sorted(stored)[:MAX_KEPT]).isdisjoint(put_back)
    assert all(len(held) - len(surplus(held)) <= MAX_KEPT for held in holders)
