"""What an owner writes into the log for what people say: it is checked first, an edited plan linted and routed."""

from muster_agent.team.schema import Team
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.fold.questions import Asked
from muster_protocol.messages import Budget, Cancel, Control, Decision, Note, ReassignTask, Reply, RetryTask
from muster_protocol.messages.people import APPROVAL, EDIT, MAX_NOTE, SERVICES
from muster_protocol.plan import MAX_DEPENDENCIES, Plan
from muster_supervisor.planning.lint import errors, lint
from muster_supervisor.planning.routing import route
from muster_supervisor.steps.orders import order_of

MAX_REASON = 2000  # characters: it is repeated in the log, the answer and the abort
MAX_VALUE = 20_000  # characters of a value as JSON
MAX_REFUSED = 100  # messages of people that are refused in the log; of more nobody is told


def decision_of(control: Control, by: str, state: RequestState, team: Team) -> Decision | None:
    """What stands in the log for a control message, without its place on `control`; None: nothing does."""
    match control:
        case Cancel():
            return Decision(decision="cancel", control_sequence=0, by=by, reason=control.reason[:MAX_REASON])
        case Note() if not by.startswith(SERVICES):
            return Decision(decision="note", control_sequence=0, by=by, reason=control.text[:MAX_NOTE])
        case Reply():
            return _reply(control, by, state, team)
        case RetryTask() | ReassignTask():
            return _order(control, by, state, team)
        case _:
            return None


def _order(order: RetryTask | ReassignTask, by: str, state: RequestState, team: Team) -> Decision | None:
    """The decision, or the reason why it cannot be done."""
    try:
        return order_of(order.model_copy(update={"reason": order.reason[:MAX_REASON]}), by, state, team)
    except Invalid as reason:
        return _refused(reason, by, state)


def _refused(reason: Invalid, by: str, state: RequestState, question: str = "") -> Decision | None:
    """What cannot be done, said to whoever wanted it."""
    if state.refused_replies >= MAX_REFUSED:
        return None
    text = str(reason)[:MAX_REASON]
    return Decision(decision="refused", control_sequence=0, by=by, reason=text, question=question)


def _reply(reply: Reply, by: str, state: RequestState, team: Team) -> Decision | None:
    """The decision, or the reason why the reply is none; one that comes too late stands nowhere."""
    asked = state.questions.get(reply.question)
    if asked is not None and asked.decision is not None:
        return None
    plan, warnings = None, tuple[str, ...]()
    try:
        if by.startswith(SERVICES):
            raise Invalid("a service cannot reply, only a person can", "sender")
        if asked is None:
            raise Invalid(f"{state.request_id} has not asked {reply.question[:80]!r}", "question")
        _check(reply, asked)
        if asked.question.cause == APPROVAL and reply.choice == EDIT:
            budget = state.plan_entry.budget if state.plan_entry is not None else Budget()
            plan, warnings = edited(reply.plan, budget, team)
    except Invalid as reason:
        return _refused(reason, by, state, reply.question[:64])
    return Decision(
        decision="reply",
        control_sequence=0,
        by=by,
        reason=reply.reason[:MAX_REASON],
        question=reply.question,
        choice=reply.choice,
        value=reply.value,
        plan=plan,
        warnings=warnings,
    )


def _check(reply: Reply, asked: Asked) -> None:
    choices = asked.question.choices
    if choices and reply.choice not in choices:
        raise Invalid(f"{reply.choice[:80]!r} is none of its choices: {', '.join(choices)}", "choice")
    if not choices and reply.choice:
        raise Invalid("the question has no choices; reply with a value", "choice")
    if len(str(reply.value)) > MAX_VALUE:
        raise Invalid(f"longer than {MAX_VALUE:,} characters", "value")
    if reply.plan is not None and reply.choice != EDIT:
        raise Invalid(f"a plan is given with the choice {EDIT!r} only", "plan")


def edited(plan: Plan | None, budget: Budget, team: Team) -> tuple[Plan, tuple[str, ...]]:
    """A person's plan, checked and routed like any other, and the warnings about it; raises with all its errors."""
    if plan is None:
        raise Invalid(f"the choice {EDIT!r} needs the plan that is to be carried out", "plan")
    findings = lint(plan, team, budget, None, is_map=False)
    if wrong := errors(findings):
        raise Invalid("; ".join(str(finding) for finding in wrong), "plan")
    routed = route(plan, team)
    if sum(len(task.dependencies) for task in routed.tasks) > MAX_DEPENDENCIES:
        text = f"more than {MAX_DEPENDENCIES:,} dependencies, with the copies of what is broadcast"
        raise Invalid(text, "plan.tasks")
    return routed, tuple(str(finding) for finding in findings)
