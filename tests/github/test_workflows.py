"""Tests of reading a repository's workflows to see whether CI starts."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.context.workflows import WorkflowFile, read_workflow

AGENT = """\
on: {issue_comment: {types: [created]}}
permissions: {}
jobs:
  resolve:
    permissions: {contents: write, issues: write}
    steps:
      - uses: actions/checkout@v4
      - uses: %s
        with: {%s}
"""


def read(text: str) -> WorkflowFile:
    found = read_workflow("ci.yml", text.encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    "on", ["pull_request", "[push, pull_request]", "{pull_request: {branches: [main]}}"]
)
def test_events_are_read_in_each_of_their_forms(on: str) -> None:
    found = read(f"on: {on}\njobs:\n  a: {{runs-on: x}}\n")
    assert "pull_request" in found.events
    assert found.checks_changes


@pytest.mark.parametrize("on", ["schedule", "workflow_dispatch", "{issues: }"])
def test_workflows_with_other_events_do_not_check_changes(on: str) -> None:
    assert not read(f"on: {on}\njobs:\n  a: {{runs-on: x}}\n").checks_changes


@pytest.mark.parametrize(
    ("uses", "given", "own"),
    [
        ("octo/resolver@v1", "model: x", False),
        ("octo/resolver@v1", "app-id: 1, app-private-key: x", True),
        ("./", "github-token: x", True),
    ],
)
def test_the_agents_job_is_found(uses: str, given: str, own: bool) -> None:
    [job] = read(AGENT % (uses, given)).agents
    assert (job.name, job.own_token) == ("resolve", own)
    assert job.permissions == {"contents": "write", "issues": "write"}


def test_a_called_workflow_is_the_agents_job_too() -> None:
    used = "octo/resolver/.github/workflows/resolve.yml@v1"
    text = f"on: issues\npermissions: write-all\njobs:\n  a:\n    uses: {used}\n"
    [job] = read(text).agents
    assert (job.own_token, job.permissions) == (False, {"*": "write"})


def test_the_inputs_of_a_job_are_read_as_settings() -> None:
    text = AGENT % ("octo/resolver@v1", "fix-failing-checks: own, draft: true")
    text = text.replace(
        "    steps:", "    env: {RESOLVER_DRAFT: no, RESOLVER_MAX_TIME: 9}\n    steps:"
    )
    [job] = read(f"env: {{RESOLVER_MAX_TIME: 8, PATH: x}}\n{text}").agents
    assert job.settings == {"fix_failing_checks": "own", "draft": "true", "max_time": "9"}


def test_permissions_that_a_job_lacks_are_named() -> None:
    [job] = read(AGENT % ("octo/resolver@v1", "")).agents
    assert job.lacks("read", "contents", "checks") == ["checks"]
    [free] = read("on: x\njobs: {a: {uses: o/resolver/.github/workflows/resolve.yml@v1}}").agents
    assert free.lacks("write", "contents") == []


@pytest.mark.parametrize(
    ("head", "name"), [("name: CI", "CI"), ("name: 3", "ci.yml"), ("x: y", "ci.yml")]
)
def test_a_workflow_without_a_name_has_its_files(head: str, name: str) -> None:
    assert read(f"{head}\non: push\njobs: {{a: {{runs-on: x}}}}").name == name


@pytest.mark.parametrize("uses", ["octo/resolver-tools@v1", "octo/other@v1", "1"])
def test_other_actions_are_not_resolver(uses: str) -> None:
    assert read(AGENT % (uses, "model: x")).agents == ()


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "[]", "jobs: 3", "on: push", "\x00", "&a [*a]", "jobs: &a {b: *a}", "- " * 500],
)
def test_an_invalid_workflow_is_ignored(text: str) -> None:
    found = read_workflow("x.yml", text.encode())
    assert found is None or found.agents == ()


def eightfold(first: str, next_one: str) -> str:
    """Eight levels, of which each names the one below it ten times."""
    lines = [f"a0: &a0 {first}"]
    for n in range(8):
        lines.append(f"a{n + 1}: &a{n + 1} " + next_one % ", ".join([f"*a{n}"] * 10))
    return "\n".join(lines)


@pytest.mark.deep
@pytest.mark.parametrize(
    "aliases",
    [eightfold("[x]", "[%s]"), eightfold("{x: y}", "{<<: [%s]}")],
    ids=["aliases", "merge keys"],
)
@pytest.mark.parametrize("place", ["with: {model: *a8}", "env: *a8", "with: *a8", "if: *a8"])
def test_a_yaml_alias_bomb_is_not_a_workflow(aliases: str, place: str) -> None:
    job = f"jobs: {{a: {{steps: [{{uses: o/resolver@v1, {place}}}]}}}}"
    begun = time.process_time()
    assert read_workflow("x.yml", f"{aliases}\n{job}\n".encode()) is None
    assert time.process_time() - begun < 2


def test_a_workflow_that_names_a_step_twice_is_read() -> None:
    text = """\
on: push
env: &env {RESOLVER_MODEL: one}
jobs:
  a: {steps: [{uses: o/resolver@v1, env: *env, with: {draft: true}}]}
  b: {steps: [{uses: o/resolver@v1, env: *env}], env: {<<: *env, RESOLVER_LABEL: two}}
"""
    first, second = read(text).agents
    assert first.settings == {"model": "one", "draft": "true"}
    assert second.settings == {"model": "one", "label": "two"}


def test_a_nested_value_is_not_a_setting() -> None:
    text = """\
jobs: {a: {if: [x], permissions: {issues: {a: b}}, uses: o/resolver@v1, with: {model: [x, y]}}}
"""
    (job,) = read(text).agents
    assert (job.settings, job.condition, job.permissions) == ({"model": ""}, "", {"issues": ""})


@given(st.binary(max_size=300))
def test_any_bytes_are_a_workflow_or_none(data: bytes) -> None:
    read_workflow("x.yml", data)


yaml_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["on", "jobs", "steps", "uses", "with", "permissions", "secrets", "a"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(yaml_like)
def test_any_structure_is_a_workflow_or_none(data: object) -> None:
    read_workflow("x.yml", json.dumps({"on": data, "jobs": {"a": data}}).encode())
