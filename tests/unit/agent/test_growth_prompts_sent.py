"""The prompts by which a plan grows, as the Messages API gets them: the whole request, in files that a person can read.

`MUSTER_WRITE_GOLDEN=1` writes them again.
"""

import json
from typing import Any

from muster_agent.models.claude import Claude
from muster_protocol.fold import RequestState
from muster_protocol.fold.budget import UNLIMITED
from muster_protocol.messages import Budget, PlanRecorded, Result, Usage
from muster_protocol.messages.growth import GrowthLimits
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.planning.asking import verdict_of
from muster_supervisor.planning.standing import replace_brief, review_brief
from muster_supervisor.planning.verdict import Verdict, read_verdict
from muster_testing.messages_server import MessagesServer, message, running_messages_server, text
from tests.unit.agent.teams import cloud
from tests.unit.agent.test_prompts_sent import QUESTION, check, seen
from tests.unit.protocol.log_builder import FAR, LogBuilder, failure, result

PRICES = TaskSpec(
    id="prices",
    description="Give the price of one vCPU hour at AWS, Azure and Google Cloud from the table prices.",
    tag="analyst",
)
OUTAGES = TaskSpec(
    id="outages", description="Find the outages of AWS, Azure and Google Cloud since January 2025.", tag="researcher"
)
REPORT = TaskSpec(
    id="report",
    description="Schreibe aus Preisen und Ausfällen eine Seite für die Leitung.",
    tag="writer",
    dependencies=("prices", "outages"),
)
OPEN = "AWS: 3 h (status page).\nOpen question: Do the outages of Azure count those of its identity service?"


def planned() -> LogBuilder:
    log = LogBuilder()
    log.take()
    plan = Plan(goal="Ein Vergleich auf einer Seite, auf Deutsch, für die Leitung", tasks=(PRICES, OUTAGES, REPORT))
    log.own(
        PlanRecorded(
            plan=plan,
            text=QUESTION,
            team="default",
            request_hash="h",
            deadline=FAR,
            in_flight=9,
            max_attempts=2,
            budget=Budget(tokens=200_000, usd=1.5),
            growth=GrowthLimits(tasks=9, rounds=2, replacements=1),
        )
    )
    return log


def gave(spec: TaskSpec, output: Any) -> Result:
    more = {"output": output, "role": spec.tag, "usage": Usage(input_tokens=9_000, output_tokens=1_000, usd=0.04)}
    return result(spec.id).model_copy(update=more)


async def asked(state: RequestState, cause: str, *replies: dict[str, Any]) -> tuple[MessagesServer, Verdict]:
    """What a model was told, and what was made of its reply."""
    team = cloud()
    guidelines = {"guidelines": "Only numbers with a source. Prices in US dollars."}
    team = team.model_copy(update={"supervisor": team.supervisor.model_copy(update=guidelines)})
    is_review = cause.startswith("review")
    brief = review_brief(state, team, seen(), ()) if is_review else replace_brief(state, team, seen(), "prices")
    async with running_messages_server(*(message(text(json.dumps(reply))) for reply in replies)) as server:
        model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url)
        verdict = await verdict_of(brief, model, UNLIMITED, lambda said: read_verdict(said, state, cause, team))
        await model.close()
    return server, verdict


async def test_the_prompt_of_a_review_and_that_of_a_reply_to_be_mended():
    log = planned()
    log.run(gave(PRICES, {"aws": 0.0416, "azure": 0.0432}), gave(OUTAGES, OPEN), gave(REPORT, "AWS ist billiger."))
    task = {
        "id": "identity",
        "description": "Say whether the outages of Azure in the documents count those of its identity service.",
        "tag": "researcher",
        "dependencies": ["outages"],
        "expected_output": "yes or no, with the source",
    }
    wrong = {**task, "id": "prices", "tag": "researchers", "dependencies": ["outage"]}
    reason = "Unklar war, ob der Identitätsdienst mitzählt."
    server, verdict = await asked(
        log.state,
        "review:1",
        {"verdict": "more", "reason": reason, "tasks": [wrong]},
        {"verdict": "more", "reason": reason, "tasks": [task]},
    )

    check("review", server.requests[0])
    check("review_mend", server.requests[1])
    assert [(spec.id, spec.tag, spec.dependencies) for spec in verdict.add] == [
        ("identity", "researcher", ("outages",))
    ]
    assert verdict.reason == reason


async def test_the_prompt_by_which_a_failed_task_is_replaced():
    log = planned()
    log.run(gave(OUTAGES, OPEN))
    denied = failure("prices", message="query_database: no such table: prices", is_final=True)
    log.run(denied.model_copy(update={"role": "analyst"}))
    tasks: list[dict[str, Any]] = [
        {
            "id": "prices-in-documents",
            "description": "Find the price of one vCPU hour at AWS, Azure and Google Cloud in the documents.",
            "tag": "researcher",
            "dependencies": [],
            "expected_output": "three prices, each with its source",
        },
        {
            "id": "page",
            "description": REPORT.description,
            "tag": "writer",
            "dependencies": ["prices-in-documents", "outages"],
            "expected_output": "eine Seite",
        },
    ]
    reply = {"verdict": "replace", "reason": "Die Preise stehen auch in den Dokumenten.", "drop": ["report"]}
    server, verdict = await asked(log.state, "failure:prices", {**reply, "tasks": tasks})

    check("replace", server.requests[0])
    assert ([spec.id for spec in verdict.add], verdict.drop) == (["prices-in-documents", "page"], ("report",))
