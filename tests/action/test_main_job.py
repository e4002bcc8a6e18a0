"""Tests of the Action's container, from the runner's event to the pull request and the outputs."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import docker
import pytest
import yaml

from resolver.events.lifecycle import RunStarted
from resolver.events.log import read_log
from resolver.events.observations import CmdOutput
from tests.action.conftest import set_up
from tests.action.image import ROOT
from tests.action.scenario import MODEL_KEY, RUNNER, Scenario
from tests.attacks.canaries import files_below, leaks
from tests.parts.run_action import ActionRun
from tests.parts.runs import bash, finish

pytestmark = [
    pytest.mark.engine,
    pytest.mark.xdist_group("action"),
    pytest.mark.timeout(900),  # the first test builds the image
]

FILES = {"events.jsonl", "outcome.json", "patch.diff", "trace.md", "trace.html"}
LOUD = "'::error::boo' '::stop-commands::t' ' ::add-mask::calc' '##[group]x' '::set-env name=a::b'"


@dataclass(frozen=True)
class Done:
    """The scenario after one job, and what the job gave back."""

    scenario: Scenario
    run: ActionRun


@pytest.fixture(scope="module")
def done(
    engine: docker.DockerClient,
    image: str,
    python_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Done]:
    """A run in which the agent looks for secrets, prints commands for the runner, and fixes."""
    with set_up(engine, image, python_image, tmp_path_factory.mktemp("main-job")) as scenario:
        scenario.endpoint.script(
            bash("env; cat /proc/*/environ; ls -l /var/run/docker.sock /github"),
            bash(f"printf '%s\\n' {LOUD}; printf 'x\\r::error::y\\n'; false"),
            bash("sed -i 's/a - b/a + b/' calc.py"),
            finish("Make add add\n\n::error::`add` subtracted; it adds now."),
        )
        yield Done(scenario, scenario.run(scenario.event()))


def test_a_comment_becomes_a_pull_request_and_one_comment(done: Done) -> None:
    assert done.run.exit_code == 0, done.run.logs
    [branch] = done.scenario.branches()
    assert branch == f"agent/issue-{done.scenario.issue.number}-add-subtracts"
    tip = done.scenario.repository.git.text("show", f"{branch}:calc.py")
    assert tip == "def add(a, b):\n    return a + b"
    [pull] = done.scenario.pulls()
    assert pull.title == "Make add add"
    [comment] = done.scenario.bot_comments()
    assert f"/pull/{pull.number}" in comment
    assert "/actions/runs/77" in comment


def test_the_job_gets_the_outputs_of_action_yml(done: Done) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert done.run.outputs.keys() == action["outputs"].keys()
    [pull] = done.scenario.pulls()
    assert done.run.outputs["pull-request-number"] == str(pull.number)


def test_a_later_step_can_read_and_remove_all_files(done: Done) -> None:
    output = done.scenario.output
    assert {path.name for path in output.iterdir()} >= FILES
    for path in (output, *output.rglob("*")):
        facts = path.lstat()
        assert (facts.st_uid, facts.st_gid) == (RUNNER, RUNNER), path
        assert facts.st_mode & 0o400, path
    assert json.loads((output / "outcome.json").read_text())["state"] == "finished"


def test_the_agent_worked_in_another_container(done: Done) -> None:
    events = list(read_log(done.scenario.output / "events.jsonl"))
    [started] = [e for e in events if isinstance(e, RunStarted)]
    assert started.runtime == "docker"
    looked = next(e for e in events if isinstance(e, CmdOutput))
    assert "INPUT_" not in looked.content
    assert "[redacted]" not in looked.content
    assert "/var/run/docker.sock': No such file" in looked.content
    done.scenario.wait_until_sandboxes_removed()


def test_no_secret_is_in_what_the_job_leaves(done: Done) -> None:
    scenario, run = done.scenario, done.run
    [pull] = scenario.pulls()
    objects = scenario.repository.git.text("log", "--all", "-p", "--format=fuller")
    prompts = "".join(str(request.body) for request in scenario.endpoint.requests)
    comments = "".join((*scenario.bot_comments(), pull.title, pull.body or ""))
    texts = (
        run.logs,
        str(run.outputs),
        run.summary,
        str(run.environment),
        objects,
        prompts,
        comments,
    )
    data = "\n".join(texts).encode() + files_below(scenario.workspace)
    assert leaks(data, (MODEL_KEY, scenario.token)) == []


@pytest.mark.attack
def test_nothing_of_the_agent_commands_the_runner(done: Done) -> None:
    """The agent prints workflow commands: the runner executes none."""
    commands = [
        line for line in re.split(r"[\r\n]", done.run.logs) if line.lstrip().startswith("::")
    ]
    [own] = commands
    assert re.fullmatch(r"::notice title=Resolver::Make add add: http://\S+/pull/\d+", own)
    assert "##[" not in done.run.logs
    assert "::stop-commands::" in done.run.logs.replace("\u200b", ""), "nothing was printed at all"
