"""Work as a GitHub App: its key and its tokens stay out of everything, no token of one repository
is shown for another, and a run that outlives its first token comes to its end.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.github.client.app import PERMISSIONS
from resolver.github.events.parse import parse_github_event
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Trigger
from resolver.storage.database import parse_database_url
from resolver.storage.run_index import RunIndex
from tests.attacks.canaries import leaks
from tests.attacks.stage import Stage
from tests.parts.git_http import token_of
from tests.parts.github import GitHubServer
from tests.parts.github_server.exchange import Exchange
from tests.parts.github_server.state import App, Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import MODEL_KEY, bash, finish
from tests.parts.stored_runs import content_of, log_in, runs_in, stored_in
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server, started

NAME, TWIN = "octo/calc", "evil/calc"
FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
BOT = "our-agent[bot]"
FIX = bash("cat secret.txt; sed -i 's/a - b/a + b/' calc.py")
HUNT = """
env; cat /proc/*/environ; cat .git/config; git config --list --show-origin; ls -la ~ /run/secrets
cat ~/app.pem ~/.netrc; find / -xdev -name '*.pem' -newer calc.py 2>/dev/null | head | xargs cat
git push origin HEAD:main
sed -i 's/a - b/a + b/' calc.py
"""


DRAFT = {"octo": "true", "evil": "false"}


def own_files(owner: str) -> dict[str, str]:
    """Return files with settings, instructions and a secret for runs of this owner only."""
    skill = f"---\nname: rules\ndescription: skill-canary-{owner}\n---\nBe kind.\n"
    return {
        ".github/resolver.yml": f"draft: {DRAFT[owner]}\n",
        "AGENTS.md": f"instructions-canary-{owner}\n",
        ".agents/skills/rules/SKILL.md": skill,
        "secret.txt": f"content-canary-{owner}\n",
    }


@pytest.fixture
def app(github: GitHubServer) -> App:
    """An App with an installation on each of two owners, for a repository of the same name, on
    which `mona` may write."""
    for name in (NAME, TWIN):
        files = {**FILES, **own_files(name.partition("/")[0])}
        github.create_repository(name, files, private=True)
        github.grant("mona", name, "write")
    return github.add_app("our-agent", NAME, TWIN)


def addresses(github: GitHubServer) -> dict[str, str]:
    return {
        **github.addresses,
    }


def shown(github: GitHubServer) -> Iterator[tuple[str, Exchange]]:
    """Every token that was shown, with where."""
    for request in list(github.requests):
        if "authorization" in request.headers:
            yield token_of(request.headers["authorization"]), request


def secrets(github: GitHubServer, app: App) -> list[str]:
    """The lines of the key, and each token and each signature that was used."""
    key = [line for line in app.private_key.splitlines() if "-----" not in line and len(line) > 40]
    return [*key, *{token for token, _ in shown(github)}]


def objects(github: GitHubServer, name: str) -> bytes:
    command = ["git", "-C", github.repository(name).git.path, "cat-file"]
    read = [*command, "--batch-all-objects", "--batch"]
    return subprocess.run(read, capture_output=True, check=True).stdout


def words(github: GitHubServer, name: str) -> str:
    issues = github.repository(name).issues.values()
    return "\n".join(
        str(text) for i in issues for text in (i.title, i.body, *(c.body for c in i.comments))
    )


def test_neither_the_key_nor_a_token_of_the_app_is_anywhere(
    stage: Stage, github: GitHubServer, app: App
) -> None:
    """The agent hunts for the key and the tokens of the GitHub App, and the model knows a part:
    none gets out."""
    issue = github.create_issue(NAME, "add() subtracts", "2 + 2", author="mona")
    stage.line.environment |= {
        **addresses(github),
        "RESOLVER_APP_ID": str(app.id),
        "RESOLVER_APP_PRIVATE_KEY": app.private_key,
    }
    del stage.line.environment["GITHUB_TOKEN"]
    line = app.private_key.splitlines()[5]
    stage.endpoint.script(bash(HUNT), finish(f"Make add add\n\nThe key holds {line}."))
    done = stage.line.run("resolve", f"{NAME}#{issue.number}")
    assert done.exit_code == 0, done.stderr
    assert [c.author.login for c in issue.comments] == [BOT]
    assert "starts no workflow" not in words(github, NAME), "said where it is not so"
    asked = json.dumps([request.body for request in stage.endpoint.requests])
    public = f"{words(github, NAME)}\n{asked}".encode() + objects(github, NAME)
    assert leaks(public + done.everything, secrets(github, app)) == []
    assert len(github.repository(NAME).git.text("for-each-ref", "refs/heads").splitlines()) == 2


def test_no_token_of_one_repository_is_shown_for_another(
    tmp_path: Path, github: GitHubServer, app: App, model_endpoint: ModelEndpoint
) -> None:
    """Deliveries of two installations name a false one: every token is requested and used for one
    repository, and no setting, instruction or content of one reaches the other."""
    forge, plans = Forge(github), Plans(model_endpoint)
    plans.add("twins", FIX, finish("Make add add"))
    key = tmp_path / "app.pem"
    key.write_text(app.private_key)
    named = {"RESOLVER_APP_ID": app.client_id, "RESOLVER_APP_PRIVATE_KEY": str(key)}
    server = Server(tmp_path, forge, model_endpoint, GITHUB_TOKEN="", **named)
    server.start()
    try:
        issues = [forge.issue(name, "twins") for name in (NAME, TWIN)]
        for issue in issues:
            payload = forge.mention(issue)
            # What a delivery says of its installation is not what decides.
            server.deliver({**payload, "installation": {"id": 1, "node_id": "x"}})
        for issue in issues:
            until(lambda i=issue: _is_done(i))
    finally:
        server.close()
    check_token_requests(github, app)
    check_separation(github, model_endpoint, server)
    seen = set()
    for token, request in shown(github):
        for name in (NAME, TWIN):
            if f"/{name}" in request.path and not request.path.endswith("/installation"):
                assert github.world.tokens[token].repositories == frozenset({name}), request.path
                seen.add(name)
    assert seen == {NAME, TWIN}
    left = b"".join(p.read_bytes() for p in server.runs.rglob("*") if p.is_file())
    assert leaks(left + server.log.encode(), secrets(github, app)) == []
    assert leaks((words(github, NAME) + words(github, TWIN)).encode(), secrets(github, app)) == []


def check_token_requests(github: GitHubServer, app: App) -> None:
    """Each token is requested for one repository of the installation, with no needless right."""
    requested = [e for e in list(github.requests) if e.path.endswith("/access_tokens")]
    assert {e.path.split("/")[-2] for e in requested} == {
        str(app.installations[name.partition("/")[0]]) for name in (NAME, TWIN)
    }
    for request in requested:
        assert request.json["repositories"] == ["calc"]
        rights = request.json["permissions"]
        assert {name: level for name, level in rights.items() if level == "write"}.items() <= (
            PERMISSIONS.items()
        )
        assert rights.keys() <= PERMISSIONS.keys()


def check_separation(github: GitHubServer, endpoint: ModelEndpoint, server: Server) -> None:
    """Check that each installation's data is in its own runs, prompts and texts only."""
    owners = [name.partition("/")[0] for name in (NAME, TWIN)]

    def of(data: bytes) -> list[str]:
        return [owner for owner in owners if re.search(rb"-canary-%b\b" % owner.encode(), data)]

    prompts = [json.dumps(request.body).encode() for request in endpoint.requests]
    folders = [
        b"".join(content_of(stored_in(server.runs), run).values())
        for run in runs_in(server.runs)
        if log_in(server.runs, run)
    ]
    for texts in (prompts, folders):
        assert sorted({str(of(data)) for data in texts}) == ["['evil']", "['octo']"]
    assert of(prompts[0]) and all(b"skill-canary" in data for data in prompts)
    for owner, name in zip(owners, (NAME, TWIN), strict=True):
        assert of(objects(github, name) + words(github, name).encode()) == [owner]
        [pull] = [i for i in github.repository(name).issues.values() if i.pull is not None]
        assert pull.pull is not None and str(pull.pull.draft).lower() == DRAFT[owner]


def _is_done(issue: Issue) -> bool:
    pulls = [i for i in list(issue.repository.issues.values()) if i.pull is not None]
    return bool(pulls) and any("Resolver opened" in c.body for c in list(issue.comments))


def test_a_run_outlives_its_first_token(
    tmp_path: Path, github: GitHubServer, app: App, model_endpoint: ModelEndpoint
) -> None:
    """A run takes longer than its installation token lives: a new token is used, and no request
    is refused."""
    issue = github.create_issue(NAME, "add() subtracts", "2 + 2", author="mona")
    comment = github.add_comment(issue, "@agent please fix this", "mona")
    asked = parse_github_event(
        "issue_comment",
        github.event_issue_comment(comment),
        ListeningPolicy(mention="@agent", label="agent"),
    )
    assert isinstance(asked, Trigger)
    steps = iter((FIX, bash("true"), finish("Make add add")))

    def an_hour_later(_: dict[str, Any]) -> Answer:
        github.advance(70 * 60)
        return next(steps)

    model_endpoint.answer_with(an_hour_later)
    environment = {
        **addresses(github),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LLM_MODEL": "openai/scripted",
        "LLM_API_KEY": MODEL_KEY,
        "LLM_BASE_URL": model_endpoint.url,
        "RESOLVER_RUNTIME": "local",
        "RESOLVER_VERIFY": "false",
        "RESOLVER_PACE": '{"write_interval": 0}',
        "RESOLVER_APP_ID": str(app.id),
        "RESOLVER_APP_PRIVATE_KEY": app.private_key,
    }
    index = RunIndex(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    runs = RequestRunner(environment, {}, stored_in(tmp_path / "runs"), index, now=github.world.now)
    done = runs.execute(started(asked, 1))
    assert done.exit_code == 0, done
    assert [e.path for _, e in shown(github) if e.status in {401, 403}] == []
    used = {token for token, request in shown(github) if f"/{NAME}" in request.path}
    assert len(used & set(github.world.tokens)) > 1
