"""Tests of running a container action like the Actions runner."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.parts.github import GitHubServer
from tests.parts.run_action import (
    HOST,
    LABEL,
    Job,
    checked_out,
    expand,
    file_command_values,
    image_tag,
    run_action,
)

ACTION = """
name: probe
description: shows what it was given
inputs:
  github-token: {description: t, default: "${{ github.token }}"}
  max iterations: {description: n, default: 100}
  publish: {description: p, default: true}
  model: {description: m}
runs:
  using: docker
  image: Dockerfile
  args: ["--model", "${{ inputs.model }}"]
"""

ENTRY = """#!/bin/sh
echo "args=$*" "pwd=$PWD" "home=$HOME"
tr '\\0' '\\n' < /proc/1/environ
echo "answer=42" >> "$GITHUB_OUTPUT"
printf 'text<<END\\none\\ntwo=2\\nEND\\n' >> "$GITHUB_OUTPUT"
echo "# Done" >> "$GITHUB_STEP_SUMMARY"
echo "KEY=value" >> "$GITHUB_ENV"
echo "/opt/bin" >> "$GITHUB_PATH"
echo "started=yes" >> "$GITHUB_STATE"
cp "$GITHUB_EVENT_PATH" "$HOME/event.json" && cat a.txt
test -S /var/run/docker.sock || exit 9
/bin/busybox wget -q -O - "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY" || exit 8
echo written > made.txt
exit 3
"""


@pytest.fixture
def action(tmp_path: Path) -> Path:
    """A folder with an action that tells all it sees."""
    folder = tmp_path / "action"
    folder.mkdir()
    (folder / "action.yml").write_text(ACTION)
    (folder / "entry.sh").write_text(ENTRY)
    (folder / "entry.sh").chmod(0o755)
    (folder / "Dockerfile").write_text(
        'FROM resolver-test/busybox:latest\nCOPY entry.sh /entry.sh\nENTRYPOINT ["/entry.sh"]\n'
    )
    return folder


@pytest.fixture
def built_image(engine: docker.DockerClient, busybox_image: str, action: Path) -> Iterator[None]:
    """Takes away the image that the action is built into."""
    yield
    engine.images.remove(image_tag(action), force=True)


@pytest.mark.engine
@pytest.mark.usefixtures("built_image")
def test_an_action_gets_the_runners_variables_and_sets_outputs(
    engine: docker.DockerClient,
    github_for_containers: GitHubServer,
    action: Path,
    tmp_path: Path,
) -> None:
    github = github_for_containers
    repository = github.create_repository("octo/demo", files={"a.txt": "one\n"})
    comment = github.add_comment(github.create_issue("octo/demo", "t"), "@agent", "alice")
    workspace = checked_out(repository.git, tmp_path / "workspace")
    run = run_action(
        engine,
        action,
        workspace,
        Job(
            repository="octo/demo",
            event_name="issue_comment",
            event=github.event_issue_comment(comment),
            server_url=github.server_url_at(HOST),
            token="secret-token",
        ),
        inputs={"model": "a model"},
    )
    assert run.exit_code == 3, run.logs
    assert run.outputs == {"answer": "42", "text": "one\ntwo=2"}
    assert (run.summary, run.environment) == ("# Done\n", {"KEY": "value"})
    assert (run.path, run.state) == (("/opt/bin",), {"started": "yes"})
    for expected in (
        "args=--model a model pwd=/github/workspace home=/github/home",
        "INPUT_GITHUB-TOKEN=secret-token",
        "INPUT_MAX_ITERATIONS=100",
        "INPUT_PUBLISH=true",
        "GITHUB_EVENT_NAME=issue_comment",
        '"full_name": "octo/demo"',
    ):
        assert expected in run.logs
    assert "GITHUB_TOKEN=" not in run.logs
    assert (workspace / "made.txt").read_text() == "written\n"


@pytest.mark.engine
def test_an_image_may_be_given_and_containers_are_removed(
    engine: docker.DockerClient, busybox_image: str, action: Path, tmp_path: Path
) -> None:
    (action / "action.yml").write_text(
        ACTION.split("runs:")[0]
        + """
runs:
  using: docker
  image: Dockerfile
  entrypoint: /bin/busybox
  env: {WHO: "${{ github.actor }}"}
  args: [env]
"""
    )
    job = Job(repository="octo/demo", event_name="push", event={})
    run = run_action(engine, action, tmp_path, job, image=busybox_image)
    assert (run.exit_code, run.outputs) == (0, {})
    assert "WHO=alice" in run.logs
    label = f"{LABEL}={tmp_path}"
    assert engine.containers.list(all=True, ignore_removed=True, filters={"label": label}) == []


@pytest.mark.engine
def test_an_action_that_never_ends_is_stopped(
    engine: docker.DockerClient, busybox_image: str, action: Path, tmp_path: Path
) -> None:
    (action / "action.yml").write_text(
        "name: sleeps\nruns: {using: docker, image: x, entrypoint: /bin/busybox, "
        'args: [sleep, "600"]}\n'
    )
    job = Job(repository="octo/demo", event_name="push", event={})
    with pytest.raises(requests.exceptions.ConnectionError):
        run_action(engine, action, tmp_path, job, image=busybox_image, timeout=1)
    label = f"{LABEL}={tmp_path}"
    assert engine.containers.list(all=True, ignore_removed=True, filters={"label": label}) == []


def test_an_unknown_input_is_an_error(action: Path, tmp_path: Path) -> None:
    job = Job(repository="octo/demo", event_name="push", event={})
    with pytest.raises(ValueError, match="Unexpected input"):
        run_action(docker.DockerClient(), action, tmp_path, job, inputs={"modle": "x"})


def test_only_known_expressions_are_filled_in() -> None:
    contexts = {"github": {"actor": "alice"}}
    assert expand("by ${{ github.actor }}!", contexts) == "by alice!"
    with pytest.raises(ValueError, match=r"secrets\.KEY"):
        expand("${{ secrets.KEY }}", contexts)


@pytest.mark.parametrize("text", ["no equals sign\n", "name<<END\nvalue\n", "=value\n"])
def test_what_the_runner_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid"):
        file_command_values(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]+", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_any_text_survives_in_a_block(values: dict[str, str]) -> None:
    text = "".join(f"{name}<<-end-of-it\n{value}\n-end-of-it\n" for name, value in values.items())
    assert file_command_values(text) == values
