"""The `if:` of the example workflow starts a job for each event that starts work, and for no other.

The expression is evaluated as GitHub does, as far as the workflow uses its language.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

import json
import re
from functools import partial
from itertools import product
from typing import Any

import pytest
import yaml

from resolver.github.events.starting_events import STARTING_EVENTS
from tests.action.image import ROOT
from tests.parts.cases import check_each
from tests.parts.events import Payload, example


def first_look(text: str) -> str:
    return str(yaml.safe_load(text)["jobs"]["resolve"]["if"])


FIRST_LOOK = first_look((ROOT / ".github/workflows/agent.yml").read_text())
CALLED = first_look((ROOT / ".github/workflows/resolve.yml").read_text())
AGENT = "helpful-machine"
_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][\w.-]*|&&|\|\||==|[(),]|\s+")


def passes(
    name: str,
    payload: Payload,
    login: str = AGENT,
    condition: str = FIRST_LOOK,
) -> bool:
    """Whether GitHub starts the job for the event. login: the variable AGENT_LOGIN."""
    context = {
        "github": {"event_name": name, "event": payload, "repository": "octo/calc"},
        "vars": {"AGENT_LOGIN": login} if login else {},
        "inputs": {
            "mention": "@agent",
            "label": "agent",
            "bot-login": login,
        },
    }
    functions = {
        "contains": lambda where, what: _contains(where, what),
        "startsWith": lambda where, what: str(where or "").lower().startswith(what.lower()),
        "fromJSON": json.loads,
        "same": lambda one, two: _folded(one) == _folded(two),
        "of": lambda path: _of(context, path),
    }
    return bool(eval(_python(condition), {"__builtins__": {}}, functions))


def _python(expression: str) -> str:
    tokens = _TOKEN.findall(expression)
    assert "".join(tokens) == expression
    words = [_word(token) for token in tokens if token.strip()]
    text = " ".join(words)
    value = r"(?:of\('[^']*'\)|'(?:[^']|'')*')"
    return re.sub(rf"({value}) == ({value})", r"same(\1, \2)", text)


def _word(token: str) -> str:
    if token in {"&&", "||"}:
        return {"&&": "and", "||": "or"}[token]
    is_path = token[0].isalpha() and "." in token
    return f"of('{token}')" if is_path else token


def _of(context: Any, path: str) -> Any:
    for part in path.split("."):
        context = context.get(part) if isinstance(context, dict) else None
    return context


def _contains(where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return any(_folded(item) == _folded(what) for item in where)
    return str(what).lower() in str(where or "").lower()


def _folded(value: Any) -> Any:
    """As == compares: texts without case, and nothing at all as the empty text."""
    return str(value or "").lower()


def pull(action: str, number: int = 0, **changes: Any) -> Payload:
    payload = example("pull_request", action, number)
    payload["pull_request"] |= {"body": "", **changes}
    payload["pull_request"]["head"]["repo"] = {"full_name": "octo/calc"}
    return payload


def issue(action: str, **changes: Any) -> Payload:
    payload = example("issues", action)
    payload["issue"] |= {"body": "", **changes}
    return payload


ASKING = {"body": "please, @Agent fix"}
LABEL = {"label": {"name": "agent"}}
ASSIGNED = {"assignee": {"login": AGENT}}


def comment_event(name: str, action: str, part: str, body: str) -> Payload:
    payload = example(name, action)
    payload[part]["body"] = body
    if "pull_request" in payload:
        payload["pull_request"]["head"]["repo"] = {"full_name": "octo/calc"}
        payload["pull_request"]["body"] = "@agent in a text that is long known"
    return payload


LET_THROUGH = [
    ("issue_comment", comment_event("issue_comment", "created", "comment", "@agent fix")),
    ("issues", issue("opened", **ASKING)),
    ("issues", issue("labeled") | LABEL),
    ("issues", issue("assigned") | ASSIGNED),
    ("pull_request", pull("opened", **ASKING)),
    ("pull_request", pull("labeled") | LABEL),
    ("pull_request", pull("assigned") | ASSIGNED),
    ("pull_request", pull("review_requested") | {"requested_reviewer": {"login": AGENT}}),
    (
        "pull_request_review",
        comment_event("pull_request_review", "submitted", "review", "@agent fix"),
    ),
    (
        "pull_request_review_comment",
        comment_event("pull_request_review_comment", "created", "comment", "@agent fix"),
    ),
    ("workflow_dispatch", {"inputs": {"issue": "3"}}),
    ("repository_dispatch", {"action": "agent", "client_payload": {"issue": 3}}),
    ("schedule", {"schedule": "17 3 * * *"}),
]
STOPPED = [
    ("issue_comment", comment_event("issue_comment", "created", "comment", "fix it")),
    ("issue_comment", comment_event("issue_comment", "edited", "comment", "@agent fix")),
    ("issues", issue("opened", body="nothing for anybody")),
    ("issues", issue("opened") | LABEL),
    ("issues", issue("labeled", **ASKING) | {"label": {"name": "bug"}}),
    ("issues", issue("assigned", **ASKING) | {"assignee": {"login": "zoe"}}),
    ("pull_request", pull("opened", body=None)),
    ("pull_request", pull("review_requested") | {"requested_reviewer": {"login": "zoe"}}),
    ("pull_request", pull("review_requested") | {"requested_reviewer": None}),
    ("pull_request_review", comment_event("pull_request_review", "submitted", "review", "fine")),
]


CONDITIONS = (FIRST_LOOK, CALLED)


def test_each_event_that_starts_work_is_among_these() -> None:
    tried = {(name, payload.get("action")) for name, payload in LET_THROUGH}
    assert tried >= {(name, event.action) for event in STARTING_EVENTS for name in event.events}


def test_what_starts_work_gets_a_job_and_what_starts_nothing_costs_none() -> None:
    def check(case: tuple[str, Payload], let_through: bool) -> None:
        assert [passes(*case, condition=one) for one in CONDITIONS] == [let_through] * 2

    check_each(LET_THROUGH, partial(check, let_through=True))
    check_each(STOPPED, partial(check, let_through=False))


def failing(
    event: str, branch: str | None, conclusion: str = "failure", owner: str = "octo"
) -> Payload:
    fields: dict[str, Any] = {"head_branch": branch, "conclusion": conclusion}
    if event == "workflow_run":
        fields["head_repository"] = {"full_name": f"{owner}/calc"}
    return {"action": "completed", event: fields, "repository": {"default_branch": "main"}}


def test_a_failing_check_gets_a_job_on_the_branches_that_a_setting_can_name() -> None:
    branches = {"main": True, "agent/issue-3": True, "topic": False, None: False}
    failures = ("failure", "timed_out")
    tried = product(
        ("workflow_run", "check_suite"), branches, (*failures, "success", "cancelled", "")
    )
    for (event, branch, conclusion), condition in product(tried, CONDITIONS):
        let_through = branches[branch] and conclusion in failures
        payload = failing(event, branch, conclusion)
        assert passes(event, payload, condition=condition) is let_through, (event, branch)


def test_a_failing_check_of_a_fork_gets_no_job() -> None:
    payload = failing("workflow_run", "main", owner="eve")
    assert not any(passes("workflow_run", payload, condition=one) for one in CONDITIONS)


@pytest.mark.parametrize(
    ("name", "action"), [("pull_request", "opened"), ("pull_request_review", "submitted")]
)
def test_a_fork_gets_no_job(name: str, action: str) -> None:
    payload = pull("opened", **ASKING) | {"action": action}
    payload["review"] = ASKING
    assert passes(name, payload)
    payload["pull_request"]["head"]["repo"]["full_name"] = "eve/calc"
    assert not passes(name, payload)
    payload["pull_request"]["head"]["repo"] = None
    assert not passes(name, payload)
