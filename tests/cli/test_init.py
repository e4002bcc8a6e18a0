"""`resolver init`: the workflow and the settings of a repository."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from resolver.cli.main import run
from resolver.config.settings import load_settings

TOOLS = Path(sys.executable).parent
ACTION = ("--action", "octo/resolver@0123456789abcdef0123456789abcdef01234567")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "demo"
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(root)], check=True)
    origin = ["remote", "add", "origin", "git@github.example.com:octo/demo.git"]
    subprocess.run(["git", "-C", str(root), *origin], check=True)
    (root / "pyproject.toml").write_text('[project]\nname = "demo"\n')
    return root


def init(root: Path, *options: str) -> int:
    return run(["init", str(root), *options], {})


def test_it_writes_a_workflow_and_settings_and_says_what_is_left_to_do(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(checkout, *ACTION) == 0
    shown = capsys.readouterr().out
    assert "wrote .github/workflows/agent.yml" in shown
    assert "https://github.example.com/octo/demo/settings/secrets/actions" in shown
    assert "LLM_API_KEY" in shown and "commit them to trunk" in shown and "AGENTS.md" in shown
    settings = yaml.safe_load((checkout / ".github/resolver.yml").read_text())
    assert load_settings({}, {}, settings).setup.strip() == "pip install -e ."
    status = subprocess.run(
        ["git", "-C", str(checkout), "status", "--porcelain", "-uall"],
        capture_output=True,
        text=True,
    )
    assert status.stdout.count(".github/") == 2


def test_the_workflow_passes_the_published_checkers(checkout: Path) -> None:
    assert init(checkout, *ACTION, "--mention", "@bot", "--label", "fix me") == 0
    workflow = checkout / ".github/workflows/agent.yml"
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)],
        ["zizmor", "--offline", "--no-progress", str(workflow)],
    ):
        result = subprocess.run([TOOLS / command[0], *command[1:]], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    inputs = yaml.safe_load(workflow.read_text())["jobs"]["resolve"]["steps"][0]["with"]
    assert (inputs["mention"], inputs["label"], inputs["egress"]) == ("@bot", "fix me", "packages")


def test_files_that_are_there_are_left_alone(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = checkout / ".github/resolver.yml"
    settings.parent.mkdir()
    settings.write_text("image: mine\n")
    init(checkout, *ACTION)
    assert settings.read_text() == "image: mine\n"
    assert "left unchanged (--force overwrites it) .github/resolver.yml" in capsys.readouterr().out
    init(checkout, *ACTION, "--force")
    assert settings.read_text() != "image: mine\n"
    capsys.readouterr()
    init(checkout, *ACTION)
    assert capsys.readouterr().out.count("unchanged") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--action", "octo/resolver"), "does not have the form OWNER/NAME@REF"),
        ((*ACTION, "--mention", "foo bar"), "--mention: the mention is one word, like @agent"),
        ((*ACTION, "--mention", "x')||true"), "can't be used in a workflow"),
        ((*ACTION, "--label", "a\nb: c"), "can't be used in a workflow"),
    ],
)
def test_what_can_not_be_written_is_a_clear_error(
    checkout: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert init(checkout, *arguments) == 2
    assert said in capsys.readouterr().err
    assert not (checkout / ".github").exists()


def test_the_checks_that_were_found_are_written(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "pytest.ini").write_text("[pytest]\n")
    (checkout / "web").mkdir()
    (checkout / "web/package.json").write_text('{"scripts": {"test": "jest", "lint": "x"}}')
    subprocess.run(["git", "-C", str(checkout), "add", "-A"], check=True)
    assert init(checkout, *ACTION) == 0
    text = (checkout / ".github/resolver.yml").read_text()
    checks = load_settings({}, {}, yaml.safe_load(text)).checks
    assert [(check.command, check.paths) for check in checks] == [
        ("python -m pytest {files}", ()),
        ("cd web && npm test -- {files}", ("web/",)),
    ]
    shown = capsys.readouterr().out
    assert "  python -m pytest (pytest.ini)" in shown
