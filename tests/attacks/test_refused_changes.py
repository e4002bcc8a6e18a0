"""Changes that must not be published: refused with exit code 5, all named, the patch kept."""

from pathlib import Path

import pytest

from tests.attacks.canaries import leaks
from tests.attacks.stage import Stage
from tests.parts.runs import Ended, bash, finish, git

HOST_SECRET = "host-canary-9a8b7c6d5e4f30211203f4e5d6c7b8a9"


def assert_refused(stage: Stage, done: Ended, *named: str) -> None:
    assert done.exit_code == 5, done.stderr
    outcome = done.outcome
    assert (outcome["state"], outcome["branch"], outcome["commit"]) == ("refused", None, None)
    for name in named:
        assert name in outcome["reason"], name
        assert name in done.stderr
    assert outcome["next_step"]
    assert git(stage.checkout, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert (done.output / "patch.diff").stat().st_size > 0
    assert (done.output / "trace.html").exists()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the host with a file that nobody may read or write."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(f"{HOST_SECRET}\n")
    return folder


def test_links_out_of_the_repository_are_refused_and_never_followed(
    stage: Stage, outside: Path
) -> None:
    """The agent adds links that lead out of the repository: refused, and the host never follows
    one."""
    done = stage.play(
        bash(f"ln -s '{outside}/secret' absolute; ln -s ../outside/secret parent"),
        bash(f"ln -s '{outside}' folder; echo planted > folder/planted; rm -rf .github"),
        bash("ln -s ../../../../../../etc .github; ln -s .git/config config; ln -s loop loop"),
        bash("cat absolute parent folder/secret loop; sed -i 's/a - b/a + b/' calc.py"),
        finish("Link out"),
    )
    assert_refused(stage, done, "absolute", "parent", "folder", ".github", "config")
    assert list(outside.iterdir()) == [outside / "secret"]
    assert leaks(stage.sinks(done), [HOST_SECRET]) == []
    assert b"new file mode 120000" in (done.output / "patch.diff").read_bytes()


def test_everything_that_policy_forbids_is_named_in_one_refusal(stage: Stage) -> None:
    """The agent changes workflows, CODEOWNERS, settings and submodules and adds a credential:
    refused, and everything is named."""
    key = "AKIA" + "QWERTYUIOPASDFGH"
    done = stage.play(
        bash("mkdir -p .github/workflows .github/actions/x .GitHub/Workflows sub"),
        bash("echo 'on: push' > .github/workflows/evil.yml; echo x >> .github/workflows/ci.yml"),
        bash("echo x > .GitHub/Workflows/case.yml; echo x > .github/actions/x/action.yml"),
        bash("echo '* @evil' > CODEOWNERS; echo 'model: evil' > .github/resolver.yml"),
        bash("git init -q sub/nested && git -C sub/nested commit -q --allow-empty -m x"
             " || git -C sub/nested -c user.name=x -c user.email=x@y commit -q --allow-empty -m x"),
        bash("printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ext::sh\\n' > .gitmodules"),
        bash(f"echo 'aws = {key[:9]}'{key[9:]} > settings.py"),
        bash("sed -i 's/a - b/a + b/' calc.py"),
        finish("Do all of it"),
    )  # fmt: skip
    assert_refused(
        stage, done, ".github/workflows/evil.yml", ".github/workflows/ci.yml", "case.yml",
        "action.yml", "CODEOWNERS", ".github/resolver.yml", "sub/nested", ".gitmodules",
        "AWS access key in settings.py line 1",
    )  # fmt: skip
    assert key not in done.outcome["reason"]


def test_a_change_that_is_too_large_is_not_published(stage: Stage) -> None:
    """The agent makes a sparse file of 5 GB: not published."""
    done = stage.play(bash("truncate -s 5G huge; sed -i 's/a - b/a + b/' calc.py"), finish("Huge"))
    assert done.exit_code in (1, 5), done.stderr
    assert "above the limit" in done.outcome["reason"]
    assert (done.outcome["branch"], done.outcome["iterations"]) == (None, 2)
    assert git(stage.checkout, "branch", "--list", "agent/*") == ""
    assert (done.output / "trace.html").exists()
    assert sum(p.stat().st_size for p in done.output.iterdir()) < 60_000_000
