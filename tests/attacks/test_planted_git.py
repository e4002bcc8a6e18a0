"""The second invariant: whatever the sandbox does to its tree, the host runs nothing in it and
publishes its bytes as they are."""

import subprocess
from pathlib import Path

from tests.attacks.stage import Stage
from tests.parts.runs import bash, finish, git

HOOKS = (
    "post-checkout pre-commit commit-msg post-commit pre-push post-index-change update "
    "reference-transaction fsmonitor-watchman post-update pre-receive post-receive pre-auto-gc"
)


def plant(mark: Path) -> str:
    """Everything by which a git that comes near runs something that makes `mark`."""
    return f"""
cat > .git/evil <<'END'
#!/bin/sh
touch '{mark}'
cat
END
chmod 755 .git/evil
E="$PWD/.git/evil"
mkdir -p .git/hooks .git/info
for hook in {HOOKS}; do cp .git/evil .git/hooks/$hook; done
cat >> .git/config <<END
[core]
  fsmonitor = $E
  hooksPath = $PWD/.git/hooks
  sshCommand = $E
  pager = $E
  editor = $E
  askPass = $E
  gitProxy = $E
  alternateRefsCommand = $E
[diff]
  external = $E
[diff "x"]
  textconv = $E
  command = $E
[filter "x"]
  clean = $E
  smudge = $E
  process = $E
  required = true
[merge "x"]
  driver = $E
[credential]
  helper = $E
[gpg]
  program = $E
[commit]
  gpgSign = true
[uploadpack]
  packObjectsHook = $E
[receive]
  procReceiveRefs = refs
[url "ext::$E"]
  insteadOf = /
[include]
  path = $PWD/included
[alias]
  bundle = !$E
  add = !$E
END
printf '* filter=x diff=x merge=x\\n' > .git/info/attributes
printf '*\\n' > .git/info/exclude
cp .git/config ~/.gitconfig
ls .git/hooks | wc -l
"""


def test_planted_hooks_settings_and_attributes_run_nothing_on_the_host(stage: Stage) -> None:
    """The agent plants hooks, git settings, filters and attributes: none runs on the host, and
    the bytes are published as they are."""
    mark = stage.folder / "host-marker"
    (stage.folder / "outside").mkdir()
    done = stage.run(
        bash(f"mkdir -p '{mark.parent}'; {plant(mark)}"),
        bash("printf '[core]\\n  pager = false\\n' > included"),
        bash("printf '* text=auto eol=lf filter=x diff=x merge=x\\n' > .gitattributes"),
        bash("printf 'a\\r\\nb' > dos.txt; printf '\\0\\377' > blob; printf 'x\\n' > -dash"),
        bash("sed -i 's/a - b/a + b/' calc.py; rm -f README.md; chmod +x calc.py"),
        finish("Make add add"),
    )
    assert done.exit_code == 0, done.stderr
    assert not mark.exists()
    branch = done.outcome["branch"]
    shown = {
        name: subprocess.run(
            ["git", "-C", stage.checkout, "cat-file", "blob", f"{branch}:{name}"],
            capture_output=True,
            check=True,
        ).stdout
        for name in ("dos.txt", "blob", "-dash", "calc.py")
    }
    assert shown == {
        # What .gitattributes says of line ends is git's own rule, and no program.
        "dos.txt": b"a\nb",
        "blob": b"\0\xff",
        "-dash": b"x\n",
        "calc.py": b"def add(a, b):\n    return a + b\n",
    }
    assert git(stage.checkout, "ls-tree", branch, "calc.py").startswith("100755")
    assert "README.md" not in git(stage.checkout, "ls-tree", "--name-only", branch).split()
    assert git(stage.checkout, "rev-parse", f"{branch}^{{tree}}") == done.outcome["tree"]
    assert git(stage.checkout, "status", "--porcelain") == ""


FORGE = """
git config --global user.name Boss; git config --global user.email boss@example.org
sed -i 's/a - b/a + b/' calc.py
git checkout -q -b release && git commit -qam 'By the boss' --author 'Boss <boss@example.org>'
git tag v9; git notes add -m x; git update-ref refs/heads/main HEAD
git commit-tree -m unrelated HEAD^{tree} > .git/HEAD
git update-ref refs/replace/$(git rev-parse HEAD~1 2>/dev/null || echo HEAD) HEAD 2>/dev/null
echo forged
"""


def test_history_that_the_agent_made_is_not_published(stage: Stage) -> None:
    """The agent commits in a maintainer's name and adds tags, notes and refs: only the change
    is published, under Resolver's name."""
    before = git(stage.checkout, "for-each-ref")
    done = stage.play(bash(FORGE), finish("Make add add"))
    assert done.exit_code == 0, done.stderr
    new = git(stage.checkout, "for-each-ref").removeprefix(before).split()
    refs = git(stage.checkout, "for-each-ref", "--format=%(refname)").split()
    assert sorted(refs) == ["refs/heads/agent/fix-it", "refs/heads/main"], new
    who = git(stage.checkout, "log", "-1", "--format=%an %cn %P", "agent/fix-it")
    assert "Boss" not in who
    assert who.endswith(f" {done.outcome['base']}")


REACH_THE_HOST = r"""
for folder in / /root /tmp/resolver-* /etc /usr/local/bin /proc/sys/kernel /sys/fs/cgroup HOST; do
  touch "$folder/resolver-test-marker" 2>/dev/null && echo "WROTE below $folder"
done
for file in /proc/sys/kernel/core_pattern /sys/kernel/uevent_helper /proc/sysrq-trigger \
    /sys/fs/cgroup/*/release_agent /etc/passwd /root/.bashrc HOST/.git/config PROMPT PACKAGE; do
  test -e "$file" && (: >> "$file") 2>/dev/null && echo "OPENED $file"
done
for device in /dev/[vs]d* /dev/nvme* /dev/loop* /dev/mem /dev/kmsg /dev/kvm; do
  test -e "$device" && echo "DEVICE $device"
done
ls -d TEMPORARY/resolver-*/clone.git 2>/dev/null && echo "SEES the clone"
echo looked
"""


def test_nothing_of_the_host_can_be_written(stage: Stage) -> None:
    """The agent writes to the host's clone, program, prompts and kernel settings: nothing can
    be written."""
    package = Path(__file__).parents[2]
    command = (
        REACH_THE_HOST.replace("HOST", str(stage.checkout))
        .replace("PROMPT", str(package / "prompts/run/commit.j2"))
        .replace("PACKAGE", str(package / "resolver/errors.py"))
        .replace("TEMPORARY", str(stage.temporary))
    )
    done = stage.run(bash(command), bash("sed -i 's/a - b/a + b/' calc.py"), finish())
    assert done.exit_code == 0, done.stderr
    output = next(e.content for e in done.events if e.kind == "cmd_output")
    assert output.split() == ["looked"]
