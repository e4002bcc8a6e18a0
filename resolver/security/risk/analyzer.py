"""Rates the risk of an agent's action. Pure: nothing is executed, looked up or requested.

Only actions of the agent itself are rated. A rule that can't decide errs towards the lower level:
the sandbox is what contains the agent, and people ignore an alarm that goes off all the time.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from resolver.events import actions as a
from resolver.events.base import ActionBase, Source
from resolver.models.approval import RiskLevel
from resolver.security.risk.destruction import (
    destruction_findings,
    lasting_findings,
    read_findings,
    write_findings,
)
from resolver.security.risk.execution import execution_findings
from resolver.security.risk.expansion import Flow
from resolver.security.risk.findings import FETCHED, Risk, RiskFinding, high, medium, risk_of
from resolver.security.risk.flows import downloaded_files, output_of
from resolver.security.risk.hosts import NetworkHost, judge_host, network_host_of
from resolver.security.risk.paths import Paths
from resolver.security.risk.python import parse_python, python_findings
from resolver.security.risk.sending import sending_findings
from resolver.security.risk.walk import ShellCall, ShellWalk

MAX_QUERY_CHARACTERS = 300
"""Characters of a URL's query beyond which it is assumed to carry data."""

MAX_TEXT_CHARACTERS = 100_000
"""Maximum characters of an action that are analyzed."""

_MAX_VALUES = 500


@dataclass(frozen=True)
class RuleAnalyzer:
    """Rates actions by rules.

    root: the repository's folder in the sandbox.
    tools: risk levels of MCP tools, by "server" or "server/tool", as configured by the operator.
    """

    root: str = "/workspace"
    tools: Mapping[str, RiskLevel] = field(default_factory=dict)

    def assess(self, action: ActionBase, cwd: str = "") -> Risk:
        """Return the risk of the action. cwd: the shell's directory; "" for the repository's."""
        if action.source is not Source.AGENT:
            return Risk()
        return risk_of(self._findings(action, Paths(self.root, cwd or self.root)))

    def _findings(self, action: ActionBase, paths: Paths) -> Iterator[RiskFinding]:
        at_root = Paths(self.root, self.root)
        match action:
            case a.CmdRun(command=command):
                yield from shell_findings(command, paths)
            case a.IPythonRunCell(code=code):
                yield from cell_findings(code, at_root)
            case a.SandboxAction(shown_path=field_name) if field_name:
                yield from read_findings(getattr(action, field_name), at_root)
            case a.FileWrite(path=path) | a.FileEdit(path=path):
                yield from write_findings(path, at_root)
            case a.BrowseURL(url=url):
                yield from url_findings(url, at_root)
            case a.BrowseInteractive(code=code):
                for text in _texts_in(code):
                    yield from url_findings(text, at_root)
            case a.McpCall():
                yield from self._tool(action, at_root)
            case _:
                return

    def _tool(self, action: a.McpCall, paths: Paths) -> Iterator[RiskFinding]:
        name = f"{action.server}/{action.name}"
        level = self.tools.get(name, self.tools.get(action.server, RiskLevel.LOW))
        if level is not RiskLevel.LOW:
            yield RiskFinding("tool", level, f"{name} is set to {level.value}")
        for text in _values(action.arguments):
            if paths.is_credential(text):
                yield medium("credential", f"{name} is given {text}")
            elif "://" in text and judge_host(text) is NetworkHost.METADATA:
                yield high("cloud_metadata", f"{name} is given {text}")


def shell_findings(text: str, paths: Paths) -> list[RiskFinding]:
    """Return the findings about shell text."""
    walk = ShellWalk(paths, _rules, _output)
    walk.run(text[:MAX_TEXT_CHARACTERS])
    if len(text) > MAX_TEXT_CHARACTERS:
        walk.findings.append(medium("obscure", "too long to be read to its end"))
    return walk.findings


def cell_findings(code: str, paths: Paths) -> list[RiskFinding]:
    """Return the findings about a cell of IPython."""
    walk = ShellWalk(paths, _rules, _output)
    findings = list(python_findings(code[:MAX_TEXT_CHARACTERS], paths, walk.run_subshell))
    if len(code) > MAX_TEXT_CHARACTERS:
        findings.append(medium("obscure", "too long to be read to its end"))
    return [*findings, *walk.findings]


def url_findings(url: str, paths: Paths) -> Iterator[RiskFinding]:
    """Yield the findings about opening a URL."""
    if url.lower().startswith("file:"):
        yield from read_findings(url[5:].replace("//", "/", 1).replace("//", "/"), paths)
    elif "://" in url and judge_host(url) is NetworkHost.METADATA:
        yield high("cloud_metadata", url)
    elif "://" in url and judge_host(url) is NetworkHost.ELSEWHERE and _is_long(url):
        yield medium("sends", f"a long address of {network_host_of(url)}")


def _is_long(url: str) -> bool:
    return len(url.partition("?")[2]) > MAX_QUERY_CHARACTERS


def _rules(call: ShellCall, walk: ShellWalk) -> Iterator[RiskFinding]:
    yield from destruction_findings(call)
    yield from sending_findings(call)
    yield from lasting_findings(call)
    yield from execution_findings(call, walk)


def _output(call: ShellCall, walk: ShellWalk) -> Flow:
    """Return what a call writes, and record the files that it downloads."""
    flow = output_of(call, walk)
    if FETCHED in flow.tags and call.name in {"curl", "wget"}:
        walk.fetched.update(call.paths.absolute(path) for path in downloaded_files(call))
    elif call.name == "tee" and FETCHED in call.stdin.tags:
        walk.fetched.update(call.paths.absolute(path) for path in call.operands)
    return flow


def _texts_in(code: str) -> Iterator[str]:
    """Yield the string arguments in calls like goto('...')."""
    tree = parse_python(code[:50_000])
    if tree is None:
        yield from code[:50_000].split("'")[1::2]
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _values(value: Any) -> Iterator[str]:
    """Yield the strings in a tool's arguments, after visiting at most `_MAX_VALUES` values."""
    pending, visited = [value], 0
    while pending and visited < _MAX_VALUES:
        item = pending.pop()
        visited += 1
        if isinstance(item, str):
            yield item[:20_000]
        elif isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
