"""The Action's container where nothing is asked for, nothing is allowed, or something is wrong."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.action.scene import ACTIONS, MODEL_KEY, REPOSITORY, Scene
from tests.attacks.canaries import files_below, leaks
from tests.parts.model_endpoint import error
from tests.parts.run_action import LABEL
from tests.parts.runs import bash, finish
from tests.parts.waiting import until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.xdist_group("action"),
    pytest.mark.timeout(900),  # the first test builds the image
]

SECONDS_TO_STOP = 7.0
"""After SIGINT the runner waits 7.5 s before it sends SIGTERM, and 2.5 s more before SIGKILL."""


def test_an_event_that_asks_for_nothing_ends_at_once(scene: Scene) -> None:
    comment = scene.mention(text="see `@agent` in the README")
    event = {**scene.event(comment), "padding": "x" * 20_000_000}
    run = scene.run(event, PYTHONPROFILEIMPORTTIME="1")
    assert run.exit_code == 0, run.logs
    assert run.outputs == {"state": "ignored"}
    assert run.summary == ""
    assert "Nothing to do: the comment doesn't mention @agent." in run.logs
    imported = {line.rpartition("|")[2].strip() for line in run.logs.splitlines()}
    assert "resolver.entrypoints.action" in imported
    assert not imported & {"litellm", "docker", "dbos", "fastapi"}
    assert not scene.github.requests
    assert not scene.output.exists()


def test_an_outsider_is_refused_and_told(scene: Scene) -> None:
    scene.github.add_user("eve")
    run = scene.run(scene.event(scene.mention("eve")))
    assert run.exit_code == 5, run.logs
    assert run.outputs["state"] == "refused"
    assert "::error title=Resolver::eve has no write access" in run.logs
    assert "eve" in run.summary
    [told] = scene.bot_comments()
    assert "write access" in told
    assert not scene.endpoint.requests
    assert not [each for each in scene.github.requests if each.kind == "git"]


def test_a_refused_model_key_is_told_without_the_key(scene: Scene) -> None:
    scene.endpoint.script(*[error(401, f"Incorrect API key provided: {MODEL_KEY}")] * 9)
    run = scene.run(scene.event())
    assert run.exit_code == 1, run.logs
    assert run.outputs["state"] == "error"
    assert "::error title=Resolver::the model endpoint at host.docker.internal" in run.logs
    [told] = scene.bot_comments()
    assert "did not accept the key" in told
    texts = (run.logs, str(run.outputs), run.summary, told)
    data = "\n".join(texts).encode() + files_below(scene.workspace)
    assert leaks(data, (MODEL_KEY, scene.token)) == []


def test_a_repository_that_lets_no_action_open_pull_requests_is_told_where_to_allow_it(
    scene: Scene,
) -> None:
    scene.github.repository(REPOSITORY).actions_may_create_pulls = False
    scene.endpoint.script(bash("sed -i 's/a - b/a + b/' calc.py"), finish())
    run = scene.run(scene.event())
    assert run.exit_code == 1, run.logs
    assert not scene.pulls()
    [told] = scene.bot_comments()
    assert "Allow GitHub Actions to create and approve pull requests" in told
    [branch] = scene.branches()
    assert branch in told, "the work that is pushed is not named"


def test_an_answer_without_a_change_is_given_once(scene: Scene) -> None:
    scene.endpoint.script(finish("add is fine: it subtracts on purpose."))
    event = scene.event()
    first, second = scene.run(event), scene.run(event)
    assert (first.exit_code, second.exit_code) == (3, 0), first.logs + second.logs
    assert "::error title=Resolver::Finished without a change" in first.logs
    assert "it subtracts on purpose" in first.summary
    [comment] = [c for c in scene.issue.comments if c.author.login == ACTIONS]
    assert "::notice title=Resolver::An earlier run has already handled this request" in second.logs
    assert f"issuecomment-{comment.id}" in second.summary
    assert len(scene.endpoint.requests) == 1


def test_a_missing_engine_never_means_less_isolation(scene: Scene) -> None:
    run = scene.run(scene.event(), DOCKER_HOST="unix:///nowhere.sock")
    assert run.exit_code == 1, run.logs
    assert not scene.endpoint.requests
    assert "no Docker engine answers at unix:///nowhere.sock" in scene.bot_comments()[0]


def test_an_image_that_cannot_be_had_is_told(scene: Scene) -> None:
    run = scene.run(scene.event(), {"image": "127.0.0.1:1/no/such:image"})
    assert run.exit_code == 1, run.logs
    assert not scene.endpoint.requests
    assert "127.0.0.1:1/no/such:image" in scene.bot_comments()[0]


def test_the_repository_sets_what_the_workflow_leaves_out(scene: Scene) -> None:
    limits = f"max_iterations: 1\nimage: {scene.sandbox}\n"
    scene.github.commit(REPOSITORY, "main", {".github/resolver.yml": limits})
    scene.endpoint.script(bash("echo one"), bash("echo two"))
    run = scene.run(scene.event(), {"image": ""})
    assert run.exit_code == 4, run.logs
    assert run.outputs["state"] == "limit"
    assert run.outputs["iterations"] == "1"


def test_a_link_in_the_checkout_is_not_written_through(scene: Scene) -> None:
    scene.github.commit(REPOSITORY, "main", {"resolver-output/outcome.json": ("120000", "/e")})
    run = scene.run(scene.event())
    assert run.exit_code == 2, run.logs
    assert "resolver-output/outcome.json is a link" in run.logs
    assert not scene.endpoint.requests


def test_a_cancelled_job_ends_in_time_and_says_so(scene: Scene, busybox_image: str) -> None:
    scene.sandbox = busybox_image
    scene.endpoint.script(bash("echo begun; sleep 300", timeout=400))
    event = scene.event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(scene.run, event)
        until(lambda: scene.endpoint.requests or waiting.done())
        assert not waiting.done(), waiting.result().logs
        log = scene.output / "events.jsonl"
        until(lambda: "sleep 300" in log.read_text())
        label = f"{LABEL}={scene.workspace}"
        [container] = scene.engine.containers.list(filters={"label": label})
        container.kill("SIGINT")
        run = waiting.result(60)
    assert run.exit_code == 1, run.logs
    assert run.outputs["state"] == "stopped"
    [told] = scene.bot_comments()
    assert "SIGINT" in told
    assert scene.sandboxes_left() == []
    assert json.loads((scene.output / "outcome.json").read_text())["state"] == "stopped"
    assert (scene.output / "events.jsonl").stat().st_size > 0
