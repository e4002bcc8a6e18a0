"""The workflow that sweeps on a schedule, as a maintainer copies it from the docs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from resolver.cli.main import COMMANDS
from resolver.cli.sweep import command
from tests.action.image import ROOT

TOOLS = Path(sys.executable).parent
[TEXT] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/how-to/sweep.md").read_text(), re.DOTALL)
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEP = yaml.safe_load(TEXT)["jobs"]["sweep"]["steps"][0]


@pytest.mark.parametrize(
    "checker",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
        ["zizmor", "--offline", "--no-progress"],
    ],
    ids=["schema", "security"],
)
def test_the_published_checkers_are_content(checker: list[str], tmp_path: Path) -> None:
    file = tmp_path / ".github" / "workflows" / "sweep.yml"
    file.parent.mkdir(parents=True)
    file.write_text(re.sub(r"resolver@v[\d.]+", f"resolver@{'0' * 40}", TEXT))
    done = subprocess.run(
        [TOOLS / checker[0], *checker[1:], file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_inputs_are_the_actions_own() -> None:
    assert set(STEP["with"]) - {"args"} <= set(ACTION["inputs"])
    assert "args" not in ACTION["runs"], "the runner would not take the workflow's"


def test_its_command_line_is_one() -> None:
    name, *args = shlex.split(STEP["with"]["args"].replace("${{ github.repository }}", "octo/calc"))
    assert name in COMMANDS
    with command.make_context(name, args) as context:
        assert isinstance(context, click.Context)
        assert context.params["repository"] == "octo/calc"
