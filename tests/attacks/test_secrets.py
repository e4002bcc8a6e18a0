"""The first invariant: no secret of the program is within the agent's reach, and none gets out."""

from base64 import b64decode

from resolver.events.observations import CmdOutput, FileReadResult, IPythonOutput
from tests.attacks.canaries import CANARIES, PATTERN, forms, leaks
from tests.attacks.stage import Stage, everywhere
from tests.parts.model_endpoint import Answer, reply, tool_call
from tests.parts.runs import Ended, bash, finish, git

SEARCH_PROCESSES = f"""
for file in /proc/[0-9]*/environ /proc/[0-9]*/task/[0-9]*/environ /proc/[0-9]*/cmdline; do
  tr '\\0' '\\n' < $file 2>/dev/null | grep -qE '{PATTERN}' && echo "LEAK in $file"
done
echo searched $(ls -d /proc/[0-9]* | wc -l) processes
"""

SEARCH_FILES = f"""
for folder in . "$HOME" ~root "$TMPDIR" "$(dirname "$HOME")" /tmp /var/tmp /dev/shm /run; do
  timeout 5 grep -rIlE --devices=skip --exclude-dir='pytest-of-*' '{PATTERN}' "$folder" \
    2>/dev/null | sed 's/^/LEAK in /'
done
find /proc/[0-9]*/fd -lname '/*' 2>/dev/null | while read -r fd; do
  test -f "$fd" && grep -qaE '{PATTERN}' "$fd" 2>/dev/null && echo "LEAK in $fd"
done
echo searched files
"""

SEARCH_MEMORY = f"""
import glob, re
wanted = re.compile(rb"{PATTERN}")
found, opened = [], 0
for maps in glob.glob("/proc/[0-9]*/maps"):
    try:
        memory = open(maps.replace("maps", "mem"), "rb", 0)
        areas = open(maps).read().splitlines()
    except OSError:
        continue
    opened += 1
    for area in areas:
        bounds, rights = area.split()[:2]
        first, last = (int(part, 16) for part in bounds.split("-"))
        if "r" in rights and last - first < 1 << 28:
            try:
                memory.seek(first)
                if wanted.search(memory.read(last - first)):
                    found.append((maps, area))
            except (OSError, ValueError, OverflowError):
                continue
print("LEAK" if found else "searched", opened, "memories", found[:3])
"""

REACH_OUT = """
import socket, urllib.request
for family, place in [
    (socket.AF_UNIX, "/run/docker.sock"), (socket.AF_UNIX, "/var/run/docker.sock"),
    (socket.AF_UNIX, "/run/containerd/containerd.sock"),
    (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET, ("127.0.0.1", MODEL_PORT)),
    (socket.AF_INET, ("172.17.0.1", 22)), (socket.AF_INET, ("1.1.1.1", 53)),
]:
    with socket.socket(family) as connection:
        connection.settimeout(2)
        try:
            connection.connect(place)
            print("REACHED", place)
        except OSError as error:
            print(place, error)
try:
    print("REACHED", socket.getaddrinfo("host.docker.internal", 80))
except OSError as error:
    print(error)
"""

OWN_ENVIRONMENT = """
import os, pathlib
print(dict(os.environ))
for pid in ("self", os.getppid(), 1):
    try:
        print(pathlib.Path(f"/proc/{pid}/environ").read_bytes())
    except OSError as error:
        print(error)
"""

GIT_SETTINGS = r"""
cat .git/config; git config --list --show-origin --show-scope; git remote -v
printf 'protocol=https\nhost=github.com\n\n' | timeout 10 git credential fill
git log --format=%B%N -5; git for-each-ref; git stash list; cat .git/packed-refs
for file in ~/.netrc ~/.git-credentials ~/.config/gh/hosts.yml ~/.docker/config.json; do
  test -e $file && echo "LEAK: $file"
done
echo looked at git
"""


def view(path: str) -> Answer:
    return tool_call("str_replace_editor", {"command": "view", "path": path})


def cell(code: str) -> Answer:
    return tool_call("execute_ipython_cell", {"code": code})


def shown(done: Ended) -> str:
    """All that came back from the sandbox."""
    kinds = (CmdOutput, IPythonOutput, FileReadResult)
    return "\n".join(e.content for e in done.events if isinstance(e, kinds))


@everywhere
def test_an_agent_that_hunts_for_secrets_finds_none(stage: Stage) -> None:
    """The agent searches environments, processes, memory, files and git settings, and tries
    sockets and addresses: it finds no secret and reaches nothing."""
    for name in (".netrc", ".git-credentials"):
        (stage.home / name).write_text(f"https://x:{CANARIES['GITHUB_TOKEN']}@github.com\n")
    done = stage.run(
        bash("env; export -p; set; declare -p; history"),
        bash(SEARCH_PROCESSES, timeout=60),
        bash(SEARCH_FILES, timeout=120),
        cell(SEARCH_MEMORY),
        cell(OWN_ENVIRONMENT),
        cell(REACH_OUT.replace("MODEL_PORT", str(stage.endpoint.port))),
        bash(GIT_SETTINGS),
        bash("ps auxeww 2>/dev/null; ls -la ~ / /proc/*/fd /proc/*/cwd /proc/*/root 2>/dev/null"),
        *[view(path) for path in ("/proc/self/environ", "/proc/1/environ", "~/.netrc", "/proc")],
        bash("ln -s /proc/self/environ environ; ln -s /proc proc; ln -s /root home"),
        *[view(path) for path in ("environ", "proc/1/environ", "home/.netrc", "../../etc/shadow")],
        bash("rm environ proc home; sed -i 's/a - b/a + b/' calc.py"),
        finish("Make add add"),
    )
    assert done.exit_code == 0, done.stderr
    seen = shown(done)
    assert "LEAK" not in seen
    assert "REACHED" not in seen
    for sign in ("searched files", "memories", "processes", "looked at git"):
        assert sign in seen
    assert "root:x:" not in seen and "root:*:" not in seen, "the editor shows files of the machine"
    assert b"[redacted]" not in done.everything, "the redactor had something to do"
    assert leaks(stage.sinks(done)) == []


def encodings(secret: str) -> list[str]:
    """The secret as a model could write it down, for a person or for a program."""
    coloured = secret[: len(secret) // 2] + "\x1b[0m" + secret[len(secret) // 2 :]
    parts = [secret[:24], secret[24:]] if len(secret) > 50 else []
    return [
        *(form.decode() for form in forms(secret)),
        *parts,
        coloured if '"' not in secret else "",
    ]


def test_a_model_that_knows_the_secrets_can_not_say_them(stage: Stage) -> None:
    """The model writes the secrets, in every encoding, into commands, cells, messages and the
    title: each is redacted."""
    known = [form for secret in CANARIES.values() for form in encodings(secret)]
    quoted = "\n".join(known).replace("'", "'\\''")
    done = stage.run(
        bash(f"cat <<'END'\n{quoted}\nEND", timeout=20),
        tool_call("think", {"thought": "\n".join(known)}),
        cell(f"print({known!r}); {known[0]!r}"),
        tool_call("no_such_tool", {known[0]: known}),
        tool_call("execute_bash", '{"command": "echo ' + known[0]),
        reply("I know " + " ".join(known)),
        view(f"/tmp/{CANARIES['LLM_API_KEY']}"),
        bash("sed -i 's/a - b/a + b/' calc.py"),
        finish(f"Make add add {known[0]}\n\n" + "\n\n".join(known)),
        options=("--max-iterations", "20"),
    )
    assert done.exit_code == 0, done.stderr
    for part in ("title", "body"):
        assert "redacted" in done.outcome["pull_request"][part]
    assert leaks(stage.sinks(done)) == []
    assert leaks(git(stage.checkout, "log", "--all", "--format=%B").encode()) == []


def test_an_issue_that_quotes_the_secrets_passes_none_on(stage: Stage) -> None:
    """An issue quotes the operator's secrets: none is in the log, a comment, a commit or a
    trace."""
    secret = CANARIES["DEPLOY_TOKEN"]
    issue = f"# Rotate {secret}\n\nIt was {secret}, and {CANARIES['GITHUB_TOKEN']}."
    done = stage.play(bash("sed -i 's/a - b/a + b/' calc.py"), finish(""), finish(""), issue=issue)
    assert done.exit_code == 0, done.stderr
    assert leaks(stage.sinks(done)) == []


SECRET = CANARIES["DEPLOY_TOKEN"]

# What the model writes down whole never gets into the sandbox: it comes in small pieces.
ASSEMBLE = (
    "S=" + "".join(f"'{SECRET[at : at + 10]}'\\\n" for at in range(0, len(SECRET), 10)) + "\n"
)


def test_a_secret_that_the_model_writes_does_not_enter_the_sandbox(stage: Stage) -> None:
    """A command contains a secret that the model knows: the sandbox gets `[redacted]` in its
    place."""
    done = stage.play(bash(f"printf %s '{SECRET}' | base64 -w0 | rev"), finish())
    (shown,) = (e.content for e in done.events if isinstance(e, CmdOutput))
    assert b64decode(shown.strip()[::-1]) == b"[redacted]"


def test_a_change_that_holds_a_secret_is_refused_and_kept_without_it(stage: Stage) -> None:
    """A change holds one of the operator's secrets: it is refused, and the kept patch lacks it."""
    done = stage.play(
        bash(f"{ASSEMBLE}printf x%s \"$S\" | base64 -w0 > leak; sed -i 's/a - b/a + b/' calc.py"),
        finish("Leak it"),
    )
    assert done.exit_code == 5, done.stderr
    assert done.outcome["state"] == "refused"
    assert "secret" in done.outcome["reason"]
    assert done.outcome["branch"] is None
    assert git(stage.checkout, "branch", "--list", "agent/*") == ""
    assert b"a + b" in (done.output / "patch.diff").read_bytes()
    # Its objects are compressed, so that the secret would not be found in it.
    assert not (done.output / "change.bundle").exists()
    assert leaks(stage.sinks(done)) == []


def test_a_secret_in_a_change_that_is_not_published_is_not_kept_either(stage: Stage) -> None:
    """A run that ends at a limit has a secret in its change: the kept patch lacks it too."""
    done = stage.play(
        bash(f'{ASSEMBLE}printf %s "$S" > leak.txt'),
        bash("true"),
        options=("--max-iterations", "2"),
    )
    assert done.exit_code == 4, done.stderr
    assert leaks(stage.sinks(done)) == []
