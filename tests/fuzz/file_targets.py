"""Targets: files of a repository, diffs and git objects, and reports of its checks."""

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from io import FileIO
from pathlib import Path
from types import SimpleNamespace

import yaml
from pydantic import ValidationError

from resolver.agents.definitions import FOLDER, KNOWN_TOOLS, read_definitions
from resolver.config.allowed_hosts import AllowList
from resolver.config.bounded_yaml import read_yaml
from resolver.config.image_reference import ImagePattern, could_be_id, parse_registry_reference
from resolver.config.settings import load_settings, repository_settings
from resolver.config.verification_settings import read_checks_setting
from resolver.errors import (
    FrontmatterError,
    PolicyViolation,
    Refused,
    UsageError,
    WorkspaceError,
)
from resolver.git.bundle import read_header, unbundle
from resolver.git.pull_request import FilePatch, hunk_heads, numbered_diff, with_code
from resolver.git.push import branch_name, slug
from resolver.git.tree import quote
from resolver.github.context.workflows import read_workflow
from resolver.memory.frontmatter import read_document, validate_document
from resolver.memory.skills.library import SkillSource, read_library
from resolver.memory.skills.skill import Origin, SkillHead, fill_task_skill
from resolver.memory.skills.triggers import covers, find_triggers, prepare_text
from resolver.models.pull_request import (
    DiffFile,
    PullRequestContext,
    ReviewThread,
    ThreadRequest,
)
from resolver.models.verification import ReportFormat
from resolver.runtime.environment.dockerfile import read_base_images
from resolver.runtime.environment.plan import COPILOT, FILES, find_setup, read_devcontainer
from resolver.runtime.environment.survey import survey
from resolver.security.formats import find_credentials
from resolver.security.invisible_text import with_invisible_shown
from resolver.verification.checks import discover_checks
from resolver.verification.manifests import may_change_tests
from resolver.verification.project_tree import ProjectTree
from tests.fuzz.target import as_text, as_yaml, fuzzed
from tests.git.scenario import Scenario, make_repository, open_scenario, plain_git
from tests.verification.test_report_properties import FRAGMENTS, REAL, check
from tests.verification.test_reports import REPORTS, SAMPLES, TRX

SETTINGS = """\
image: python:3.12-slim
setup: pip install -e .
max_budget: 5.0
draft: true
pull_request_labels: [ada, org/team]
checks:
  - {name: unit, command: pytest -q, report: junit, path: out.xml}
mcp:
  docs: {command: npx, args: [x], tools: ["a*"]}
"""


@fuzzed(
    SETTINGS,
    objects=(as_yaml(SETTINGS),),
    tokens="image: max_budget: checks: mcp: - [ { & * << !!python/object: | >",
)
def repository_settings_file(data: bytes) -> None:
    """`.github/resolver.yml`: settings, or a UsageError that names the file."""
    try:
        load_settings({}, {}, repository_settings(data))
    except UsageError as error:
        assert ".github/resolver.yml" in error.what


@fuzzed(
    "a: &a [x, x]\nb: *a\n<<: {c: 1}\n", "- 0x1f\n- 1_000\n- 2026-01-01\n- .inf\n- !!binary aGk=\n",
    tokens="&a *a << : - ? | > !! !!set !!omap --- ... 0x 1e 60:60 %YAML",
)  # fmt: skip
def bounded_yaml(data: bytes) -> None:
    """YAML: plain values of limited size, or a YAMLError."""
    for texts in (False, True):
        with suppress(yaml.YAMLError):
            read_yaml(data, texts=texts)


@fuzzed(objects=([{"name": "unit", "command": "pytest", "report": "junit", "path": ["a.xml"]}],))
def declared_checks(data: bytes) -> None:
    """The setting `checks`: checks with name and command, or a ValueError that says what is wrong."""
    try:
        checks = read_checks_setting(as_text(data))
    except ValueError as error:
        assert str(error)
    else:
        assert all(check.name and check.command for check in checks)


@fuzzed(
    "python:3.12",
    "ghcr.io/a/b@sha256:" + "a" * 64,
    "localhost:5000/a:b",
    tokens=": @ / sha256: * _ . - A",
)
def image_reference(data: bytes) -> None:
    """Reference of an image: one of a registry, or a UsageError."""
    text = as_text(data)
    with suppress(UsageError):
        reference = parse_registry_reference(text, "image")
        assert parse_registry_reference(reference, "image") == reference
        assert not could_be_id(reference)
    with suppress(ValueError, UsageError):
        ImagePattern.parse(text).matches(text)


@fuzzed(
    "pypi.org",
    "*.example.org",
    "private:[fd00::5]:8080",
    "docs.example.org:8443",
    tokens="private: * . : [ ] 0x7f 1.1",
)
def allowed_host(data: bytes) -> None:
    """Entry of the list of allowed hosts: a rule, or a ValueError."""
    text = as_text(data)
    with suppress(ValueError):
        AllowList.parse([text])
    with suppress(ValueError):
        rule = AllowList.parse(["pypi.org"]).find(text, 443)
        assert rule is not None and text.lower() == "pypi.org"


AGENT = "---\nname: notes\ndescription: Writes notes.\ntools: [finish, execute_bash]\nmodel: small\n---\nDo it well.\n"
SKILL = "---\nname: release\ntriggers: [release, /\\brc\\d+/]\ninputs:\n  - {name: v, default: 1}\n---\nTag ${v}, {{ v }}.\n"


@fuzzed(AGENT, tokens="--- name: description: tools: model: [ ] | > & * ${v} {{ }}")
def agent_definition(data: bytes) -> None:
    """Definition of an agent: an agent with known tools, or a problem that names the file."""
    path = f"{FOLDER}notes.md"
    found = read_definitions({path: data}.get, [path], ("help",))
    assert len(found.agents) + len(found.problems) == 1
    for agent in found.agents:
        assert set(agent.tools) <= set(KNOWN_TOOLS) and agent.name != "help" and agent.prompt


@fuzzed(
    SKILL,
    AGENT,
    tokens="--- name: triggers: inputs: globs: ${v} {{ v }} | > & * ? - \\b (a+)+ **/*.py",
)
def skill_file(data: bytes) -> None:
    """Skills and instructions of a repository: read, or named among the problems."""
    files = {".agents/skills/release.md": data, "AGENTS.md": data, "src/AGENTS.md": data}
    found = read_library([SkillSource(Origin.REPOSITORY, tuple(files), files.get)])
    for skill in found.skills:
        with suppress(Refused):
            fill_task_skill(skill, "a b 'c")
    for folder in found.nested:
        found.instructions_at(folder)
    with suppress(FrontmatterError):
        validate_document(read_document(as_text(data), "a.md"), SkillHead)


@fuzzed(
    "release\0please release rc1",
    "/rc\\d+/\0rc12 `rc1`",
    "**/*.py\0src/a.py",
    tokens="/ * ** ? [a-z] ! (a|b)+ \\d \0 ` ```",
)
def skill_trigger(data: bytes) -> None:
    """Triggers and globs of skills: matched against any text."""
    trigger, _, text = as_text(data).partition("\0")
    with suppress(ValidationError):
        for trigger_words in SkillHead.model_validate({"triggers": [trigger]}).triggers:
            find_triggers(trigger_words, prepare_text(text))
    assert covers(trigger, text) in {True, False}


CONTAINER = '// mine\n{"image": "debian:12", "build": {"dockerfile": "D", "args": {"A": "1"}}, "postCreateCommand": ["a"],}'


@fuzzed(
    CONTAINER, '{"image": "a", "postCreateCommand": {"x": ["a", "b"], "y": "c"}, "onCreateCommand": "d"}',
    objects=({"image": "a", "build": {"dockerfile": "../D", "context": "..", "args": {"A": "${localEnv:X}"}},
              "postCreateCommand": {"x": ["a"]}, "features": {}},),
    tokens="// /* */ , ${localEnv:X} ${ Infinity 0x1 +1 .5 'a' \\u2028",
)  # fmt: skip
def devcontainer(data: bytes) -> None:
    """devcontainer.json: an image and commands, or a UsageError that names the file."""
    try:
        read_devcontainer({FILES[0]: data}.get)
    except UsageError as error:
        assert FILES[0] in error.what


STEPS = """\
on: {push: {branches: [main]}, pull_request: }
env: {A: b}
jobs:
  copilot-setup-steps:
    runs-on: ${{ matrix.os }}
    strategy: {matrix: {os: [ubuntu-latest], python: ["3.12"], include: [{os: x}]}}
    services: {postgres: {image: "postgres:16", env: {POSTGRES_PASSWORD: x}, ports: ["5432:5432"], options: --health-cmd a}}
    defaults: {run: {working-directory: web}}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: |
          npm ci && npm test
        if: always()
        working-directory: a b
        env: {T: "${{ secrets.T }}"}
"""
WORKFLOW_TOKENS = "${{ }} matrix. secrets. on: push jobs: steps: run: uses: with: env: services: image: & * << | >- - ["


@fuzzed(STEPS, objects=(as_yaml(STEPS),), tokens=WORKFLOW_TOKENS)
def workflow_file(data: bytes) -> None:
    """Workflows: whether they test, and the set-up of an agent's job."""
    read_workflow(".github/workflows/ci.yml", data)
    try:
        find_setup({COPILOT[0]: data}.get)
    except UsageError as error:
        assert COPILOT[0] in error.what


COMPOSE = """\
services:
  db:
    image: postgres:16
    environment: [POSTGRES_PASSWORD=x]
    ports: ["5432:5432"]
    healthcheck: {test: [CMD, pg_isready], interval: 1s, retries: 5}
    command: ["postgres", "-c", "fsync=off"]
    volumes: [data:/var/lib]
"""


def _split_file(data: bytes, files: Mapping[str, bytes], default: str) -> tuple[str, bytes]:
    """Return a path of `files` and a content: an input is both, separated by a NUL character."""
    name, _, content = data.partition(b"\0")
    path = as_text(name)
    return path if path in files else default, content


PROJECT_FILES = {
    "Makefile": b"test: deps\n\tpytest $(ARGS)\n.PHONY: test\n",
    "pyproject.toml": b'[project]\nname = "x"\nrequires-python = ">=3.11"\n[tool.pytest.ini_options]\ntestpaths = ["t"]\n',
    "tox.ini": b"[tox]\nenvlist = py311\n[testenv]\ncommands = pytest {posargs}\n",
    "package.json": b'{"scripts": {"test": "jest --ci"}, "engines": {"node": ">=20"}, "devDependencies": {"jest": "1"}}',
    "Cargo.toml": b'[package]\nname = "a"\n[workspace]\nmembers = ["b"]\n',
    "go.mod": b"module a\n\ngo 1.22\n",
    "pom.xml": b"<project><properties><java.version>21</java.version></properties></project>",
    "build.gradle": b"plugins { id 'java' }\ntest { useJUnitPlatform() }\n",
    "Gemfile": b"source 'x'\ngem 'rspec'\n",
    ".travis.yml": b"script: make test\n",
    "requirements.txt": b"pytest==8\n-r other.txt\n",
}


@fuzzed(
    *(path.encode() + b"\0" + content for path, content in PROJECT_FILES.items()),
    tokens="[ ] = \"\"\" scripts test: \t $( { } <java.version> ${ .PHONY: include \\ # ; -r",
)  # fmt: skip
def project_file(data: bytes) -> None:
    """Files of projects: a limited number of checks, and an image and set-up on one line."""
    path, content = _split_file(data, PROJECT_FILES, "Makefile")
    files = {path: content, "tests/test_a.py": b"def test_a(): pass\n"}
    found = discover_checks(ProjectTree.from_files(files))
    assert len(found) <= 2
    assert all("\0" not in check.command for check in found)
    surveyed = survey(files, files.get)
    assert surveyed.image and "\n" not in surveyed.image


@fuzzed(
    "ARG V=3.12\nFROM python:${V:-3} AS be\nCOPY --from=be /x /y\nRUN cat <<E\nFROM x\nE\n",
    "# escape=`\nFROM --platform=$P a:1 AS b\nFROM b\nRUN --mount=type=bind,from=c:1 x\n",
    tokens="FROM ARG COPY --from= RUN <<E E \\ ` ${V:-x} ${V:+x} $V # escape= AS --mount=from=",
)  # fmt: skip
def dockerfile(data: bytes) -> None:
    """Dockerfiles: base images of registries, or a UsageError that names the file."""
    try:
        found = read_base_images("ci/Dockerfile", as_text(data), {"V": "1"})
    except UsageError as error:
        assert "ci/Dockerfile" in error.what
    else:
        assert all(":" in image or "@" in image for image in found)


HUNKS = (
    "@@ -1,3 +1,4 @@ def f():\n a\n-b\n+c\n+d\n\\ No newline at end of file\n@@ -9 +10,0 @@\n-x\n"
)


@fuzzed(HUNKS, tokens=("@@ -1 +1 @@", "@@", "+", "-", "\\", "\r", "-1,0", ",", "99999999999"))
def unified_diff(data: bytes) -> None:
    """Unified diffs, and hunks of review comments: numbered lines of limited length."""
    file = DiffFile(path="x", status="modified", additions=1, deletions=1)
    hunks = b"".join(b"@@ -1 +1 @@\n" if line.startswith(b"@") and not any(hunk_heads(line)) else
                     line + b"\n" for line in data.split(b"\n"))  # fmt: skip
    assert len(numbered_diff([FilePatch(file, hunks)], with_invisible_shown)) < 200_000
    pull = PullRequestContext(number=1, head="a" * 40, base_branch="main")
    for side in ("LEFT", "RIGHT"):
        thread = ReviewThread(
            id="x",
            path="a",
            line=2,
            original_line=2,
            side=side,
            hunk=as_text(data),
            is_outdated=True,
        )
        found = with_code(ThreadRequest(label="T1", thread=thread), pull, lambda path: None, str)
        assert len(found.code.split("\n")) <= 100


@fuzzed(
    "It breaks: `a/b` on Windows",
    "../../main",
    "--upload-pack=x",
    "@{-1}",
    tokens=".. / ~ ^ : .lock @{ HEAD - é",
)
def branch_title(data: bytes) -> None:
    """Title of an issue: a safe branch name."""
    text = as_text(data)
    name = slug(text)
    assert name.isascii() and 1 <= len(name) <= 50 and not set(name) & set(" ~^:?*[\\/.")
    assert branch_name(text, 12).startswith("agent/")
    assert quote(data.replace(b"\0", b"") or b"x").isprintable()


@cache
def _bundle_scenario() -> SimpleNamespace:
    """Return a clone of the host, and a valid bundle on top of its base."""
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    scenario: Scenario = open_scenario(make_repository(place / "source", {"a": "1\n"}), place)
    forged = place / "forged"
    plain_git(place, "clone", "-q", "--bare", str(scenario.source), str(forged))
    base = scenario.workspace.base
    blob = plain_git(forged, "hash-object", "-w", "--stdin", stdin=b"2\n")
    entry = b"100644 a\0" + bytes.fromhex(blob)
    tree = plain_git(forged, "hash-object", "-w", "-t", "tree", "--stdin", stdin=entry)
    commit_text = (
        f"tree {tree}\nparent {base}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nx\n"
    )
    commit = plain_git(
        forged, "hash-object", "-w", "-t", "commit", "--stdin", stdin=commit_text.encode()
    )
    plain_git(forged, "update-ref", "refs/heads/change", commit)
    path = place / "change.bundle"
    plain_git(forged, "bundle", "create", "-q", str(path), "refs/heads/change", f"^{base}")
    return SimpleNamespace(
        folder=folder, place=place, git=scenario.workspace.git, base=base, commit=commit, tree=tree,
        bundle=path.read_bytes(),
    )  # fmt: skip


def remove_bundle_scenario() -> None:
    if _bundle_scenario.cache_info().currsize:
        _bundle_scenario().folder.cleanup()
        _bundle_scenario.cache_clear()


@fuzzed(
    b"# v2 git bundle\n-"
    + b"a" * 40
    + b" x\n"
    + b"b" * 40
    + b" refs/heads/x\n\nPACK\0\0\0\2\0\0\0\1",
    b"# v3 git bundle\n@object-format=sha1\n" + b"b" * 40 + b" refs/heads/x\n\nPACK",
    tokens=("# v2 git bundle\n", "# v3 git bundle\n", "@filter=blob:none\n", "-", "\n\n", "a" * 40),
)
def bundle_header(data: bytes) -> None:
    """Header of a git bundle: ids and refs, or a WorkspaceError."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        file.seek(0)
        assert isinstance(file, FileIO)
        try:
            read_header(file)
        except WorkspaceError as error:
            assert "can't be used" in error.what


@fuzzed(
    *(json.dumps([[n, 1 << (n % 8)]]) for n in (1, 40, 130, 200)), objects=([[20, 3], [150, 255]],)
)
def git_bundle(data: bytes) -> None:
    """A bundle with flipped bits: the announced change exactly, or a refusal.

    The data is a list of [offset from the end, bits to flip].
    """
    scenario = _bundle_scenario()
    try:
        flips = json.loads(data)
    except (ValueError, RecursionError):
        flips = None
    changed = bytearray(scenario.bundle)
    if isinstance(flips, list):
        for flip in flips:
            match flip:
                case [int(offset), int(bits)]:
                    changed[-1 - offset % len(changed)] ^= bits % 256
    else:
        changed[-len(data) :] = data[-len(changed) :]
    path = scenario.place / "fuzzed.bundle"
    path.write_bytes(changed)
    try:
        unbundle(scenario.git, path, scenario.base, scenario.commit, scenario.tree)
    except (WorkspaceError, PolicyViolation) as error:
        assert error.next_step
    else:
        assert scenario.git.text("rev-parse", f"{scenario.commit}^{{tree}}") == scenario.tree


def _of(report_format: ReportFormat) -> tuple[bytes, ...]:
    return tuple(
        content
        for content, (_, sample_format) in zip(REAL, SAMPLES, strict=False)
        if sample_format == report_format
    )


def _report_tokens() -> tuple[str, ...]:
    return tuple(fragment.decode("utf-8", "replace") for fragment in FRAGMENTS)


@fuzzed(*_of("junit"), tokens=_report_tokens())
def junit_report(data: bytes) -> None:
    """JUnit reports: a limited number of cases, or faults."""
    check(data, "junit")


@fuzzed(TRX, tokens=_report_tokens())
def trx_report(data: bytes) -> None:
    """trx reports of .NET: a limited number of cases, or faults."""
    check(data, "trx")


@fuzzed(*_of("go-json"), tokens=_report_tokens())
def go_report(data: bytes) -> None:
    """Output of `go test -json`: a limited number of cases, or faults."""
    check(data, "go-json")


@fuzzed(
    *_of("jest-json"),
    objects=(json.loads((REPORTS / "jest.json").read_bytes()),),
    tokens=_report_tokens(),
)
def jest_report(data: bytes) -> None:
    """JSON reports of jest and vitest: a limited number of cases, or faults."""
    check(data, "jest-json")


@fuzzed(*_of("cargo"), tokens=_report_tokens())
def cargo_report(data: bytes) -> None:
    """Output of `cargo test`: a limited number of cases, or faults."""
    check(data, "cargo")


MANIFESTS = {
    "pyproject.toml": b'[project]\nversion = "1"\ndependencies = ["a>=1"]\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    "package.json": b'{"version": "1", "scripts": {"test": "jest"}, "dependencies": {"a": "^1"}}',
    "setup.cfg": b"[metadata]\nversion = 1\n[options]\ninstall_requires =\n  a\n",
    "go.mod": b"module a\n\ngo 1.21\n\nrequire (\n\ta/b v1.0.0\n)\n",
}


@fuzzed(
    *(path.encode() + b"\0" + content for path, content in MANIFESTS.items()),
    tokens="[ ] { } \" ' = , : / @ require ( ) version dependencies scripts test \n",
)
def changed_manifest(data: bytes) -> None:
    """A changed manifest: whether it may change the tests, or that a person must look."""
    path, content = _split_file(data, MANIFESTS, "package.json")
    assert may_change_tests(path, MANIFESTS[path], content) in {True, False}
    assert not may_change_tests(path, MANIFESTS[path], MANIFESTS[path])


@fuzzed(
    "key = ghp_" + "a1B2" * 9,
    "AKIA" + "A" * 16,
    "-----BEGIN RSA PRIVATE KEY-----\nMII",
    tokens="ghs_ ghp_ eyJ . AKIA sk- xox -----BEGIN",
)
def credential_formats(data: bytes) -> None:
    """Text with the formats of credentials: found at places that exist."""
    text = as_text(data)
    for found in find_credentials(text):
        assert 0 <= found.start < found.end <= len(text)
