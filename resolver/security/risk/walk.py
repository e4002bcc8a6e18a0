"""Walks a shell script in the order in which a shell would run it and turns each command into a
`ShellCall`: its words with all expansions, its standard input, and the origin of that data.

Scripts that a command runs in turn (`bash -c`, `eval`, `xargs`, `find -exec`, a here-document for
`sh`) are walked too. Text, calls and depth are limited; a finding says when a limit was exceeded.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from posixpath import basename

from resolver.security.risk.expansion import Expander, Flow
from resolver.security.risk.findings import RiskFinding, high, medium
from resolver.security.risk.paths import Paths
from resolver.security.shell.syntax import Pipeline, PipelineStage, Redirect, assignment, parse
from resolver.security.shell.wrappers import unwrap_command

MAX_DEPTH = 10
"""Maximum depth of scripts that run scripts."""

MAX_TEXT_CHARACTERS = 400_000
"""Maximum characters that are read for one action; nested scripts count again."""

MAX_CALLS = 5_000

MAX_WORDS = 2_000
"""Maximum words of one command that are looked at."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "mksh"})

LITERAL = "literal"
"""Tag of data that is written in the command itself, for example a here-document."""


@dataclass(frozen=True)
class ShellCall:
    """Represents one command.

    argv: the expanded words without wrappers such as `sudo`; never empty.
    stdin: the data on standard input.
    tags: origins of the data that was substituted into the words.
    redirects: pairs of operator and target.
    paths: interprets the command's paths.
    """

    argv: tuple[str, ...]
    stdin: Flow
    tags: frozenset[str]
    redirects: tuple[tuple[str, str], ...]
    paths: Paths

    @cached_property
    def name(self) -> str:
        """The command's name without its directory."""
        return basename(self.argv[0]) or self.argv[0]

    @property
    def args(self) -> tuple[str, ...]:
        """The words after the command's name."""
        return self.argv[1:]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The arguments that are not options."""
        operands, after_options = [], False
        for arg in self.args:
            if arg == "--" and not after_options:
                after_options = True
            elif after_options or not arg.startswith("-") or arg == "-":
                operands.append(arg)
        return tuple(operands)

    def has(self, letters: str, *names: str) -> bool:
        """Return True if one of the short options `letters` or of the options `names` is given."""
        for arg in self.args:
            if arg.startswith("--"):
                if arg.partition("=")[0] in names:
                    return True
            elif arg in names or (
                arg.startswith("-") and any(letter in arg[1:] for letter in letters)
            ):
                return True
        return False

    @cached_property
    def text(self) -> str:
        """The command on one line, for people."""
        return " ".join(self.argv)

    @cached_property
    def writes_to(self) -> tuple[str, ...]:
        """Targets of the redirections that write, without file descriptors."""
        write_operators = {">", ">>", ">|", "&>", "&>>", "<>", ">&"}
        return tuple(
            target
            for operator, target in self.redirects
            if operator in write_operators and not _is_descriptor(target)
        )

    @cached_property
    def reads_from(self) -> tuple[str, ...]:
        """Targets of the redirections that read."""
        return tuple(target for operator, target in self.redirects if operator in {"<", "<>"})


Rules = Callable[[ShellCall, "ShellWalk"], Iterable[RiskFinding]]
Output = Callable[[ShellCall, "ShellWalk"], Flow]


@dataclass
class ShellWalk:
    """Represents the state of one walk.

    paths: interprets paths from the shell's current directory on.
    rules: returns the findings of a call.
    output: returns what a call writes to its standard output.
    findings: all findings so far.
    variables: the variables that the script has set.
    written: content of the files that the script has written, by absolute path.
    fetched: absolute paths of the files that the script has downloaded.
    functions: bodies of the functions that the script has defined.
    depth, text_left, calls_left: position relative to the limits.
    """

    paths: Paths
    rules: Rules
    output: Output
    findings: list[RiskFinding] = field(default_factory=list)
    variables: dict[str, Flow] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    fetched: set[str] = field(default_factory=set)
    functions: dict[str, list[Pipeline]] = field(default_factory=dict)
    depth: int = 0
    text_left: int = MAX_TEXT_CHARACTERS
    calls_left: int = MAX_CALLS

    def run(self, text: str) -> Flow:
        """Walk the text as a script and return what it writes."""
        self.text_left -= len(text)
        if self.depth >= MAX_DEPTH or self.text_left < 0 or self.calls_left < 0:
            self._note_limit()
            return Flow()
        self.depth += 1
        try:
            script = parse(text)
            self.functions.update(script.functions)
            for name, body in script.functions.items():
                if _calls_itself_twice(name, body):
                    self.findings.append(high("fork_bomb", f"{name} starts itself without end"))
                self._run_body(body)
            return self._run_pipelines(script.pipelines)
        finally:
            self.depth -= 1

    def run_subshell(self, text: str) -> Flow:
        """Walk the text in a subshell, whose directory and variables don't outlive it."""
        paths, variables = self.paths, dict(self.variables)
        flow = self.run(text)
        self.paths, self.variables = paths, variables
        return flow

    def _note_limit(self) -> None:
        finding = medium("obscure", "too long or too deeply nested to be read")
        if finding not in self.findings[-1:]:
            self.findings.append(finding)

    def _run_pipelines(self, pipelines: list[Pipeline]) -> Flow:
        flows = [self._run_pipeline(pipeline) for pipeline in pipelines]
        texts = [flow.text for flow in flows if flow.text != ""]
        tags = frozenset[str]().union(*(flow.tags for flow in flows))
        all_known = all(text is not None for text in texts)
        return Flow("".join(text or "" for text in texts) if all_known else None, tags)

    def _run_pipeline(self, pipeline: Pipeline) -> Flow:
        flow = Flow("")
        paths = self.paths
        for stage in pipeline:
            flow = self._run_stage(stage, flow)
        if len(pipeline) > 1:
            self.paths = paths  # each part of a pipeline runs in a subshell
        return flow

    def _run_body(self, body: list[Pipeline]) -> Flow:
        if self.depth >= MAX_DEPTH * 4 or self.calls_left < 0:
            self._note_limit()
            return Flow()
        self.depth += 1
        try:
            return self._run_pipelines(body)
        finally:
            self.depth -= 1

    def _run_stage(self, stage: PipelineStage, stdin: Flow) -> Flow:
        if stage.body is None:
            return self._run_simple(stage, stdin)
        if stage.kind == "function":
            return Flow("")
        paths = self.paths
        self._set_loop_variable(stage, stdin)
        flow = self._run_body(stage.body)
        if stage.kind == "(":
            self.paths = paths
        redirects, tags, text = self._expand_redirects(stage.redirects)
        flow = Flow(flow.text, flow.tags | stdin.tags)
        call = ShellCall((stage.kind,), Flow(text, stdin.tags), tags, redirects, paths)
        self.findings.extend(self.rules(call, self))
        return flow

    def _set_loop_variable(self, stage: PipelineStage, stdin: Flow) -> None:
        """Set the variable of a loop. Its first value stands for all of them."""
        if stage.kind in {"for", "select"} and stage.words:
            name, values = stage.words[0], stage.words[2:]
            value = Flow(None)
            for raw in values[:1]:
                expanded = self.expander.words(raw)
                first = expanded.words[0] if expanded.words else None
                value = Flow(first, frozenset(expanded.tags))
            self.variables[name] = value
        elif stage.kind in {"while", "until"} and stage.body and stage.body[0]:
            words = stage.body[0][-1].words
            operands = [word for word in words if not word.startswith("-")]
            if "read" in operands:
                for name in operands[operands.index("read") + 1 :]:
                    self.variables[name] = Flow(None, stdin.tags)

    @property
    def expander(self) -> Expander:
        """Expands words with the current variables."""
        return Expander(self.variables, self.run_subshell)

    def _run_simple(self, stage: PipelineStage, stdin: Flow) -> Flow:
        self.calls_left -= 1
        if self.calls_left < 0:
            return Flow()
        words, assignments = self._split_assignments(stage.words)
        argv: list[str] = []
        tags: set[str] = set()
        for raw in words[: MAX_WORDS + 1]:
            process = self.expander.process(raw)
            # a process substitution is passed to the command as the path of a descriptor
            if process is not None:
                tags |= process[1].tags
                argv.append("/dev/fd/63")
                continue
            expanded = self.expander.words(raw)
            tags |= expanded.tags
            argv.extend(expanded.words)
        if len(argv) > MAX_WORDS:
            argv = argv[:MAX_WORDS]
            self._note_limit()
        redirects, redirect_tags, text = self._expand_redirects(stage.redirects)
        if text is not None:
            stdin = Flow(text, frozenset({LITERAL}) | redirect_tags)
        for name, flow in assignments:
            self.variables[name] = flow
        call = ShellCall(
            tuple(argv) or ("",),
            stdin,
            frozenset(tags) | redirect_tags,
            redirects,
            self.paths,
        )
        return self.call(call)

    def call(self, call: ShellCall) -> Flow:
        """Evaluate one command and what it runs; return what it writes."""
        self.calls_left -= 1
        self.text_left -= sum(map(len, call.argv))
        if self.calls_left < 0 or self.text_left < 0:
            self._note_limit()
            return Flow()
        call = replace(call, argv=unwrap_command(call.argv))
        self.findings.extend(self.rules(call, self))
        if call.name == "cd" and len(call.argv) > 1:
            self.paths = self.paths.change_folder(call.operands[0] if call.operands else "~")
        elif call.name in {"cd", "pushd"}:
            self.paths = self.paths.change_folder((*call.operands, "~")[0])
        elif call.name in {"export", "declare", "local", "readonly", "typeset"}:
            self._declare(call)
        elif call.name == "read":
            for name in call.operands:
                self.variables[name] = Flow(None, call.stdin.tags)
        flow = self.output(call, self)
        for target in call.writes_to:
            path = call.paths.absolute(target)
            if flow.text is not None:
                self.written[path] = (self.written.get(path, "") + flow.text)[:MAX_TEXT_CHARACTERS]
            if "fetched" in flow.tags:
                self.fetched.add(path)
        return flow

    def _declare(self, call: ShellCall) -> None:
        for word in call.args:
            assigned = assignment(word)
            if assigned is not None:
                self.variables[assigned[0]] = Flow(assigned[1], call.tags)

    def _split_assignments(self, words: list[str]) -> tuple[list[str], list[tuple[str, Flow]]]:
        """Split the words into those after the assignments, and what the assignments set."""
        assignments: list[tuple[str, Flow]] = []
        for index, raw in enumerate(words):
            assigned = assignment(raw)
            if assigned is None:
                return words[index:], assignments
            expanded = self.expander.text(assigned[1])
            assignments.append((assigned[0], Flow(expanded.words[0], frozenset(expanded.tags))))
        return [], assignments

    def _expand_redirects(
        self, redirects: list[Redirect]
    ) -> tuple[tuple[tuple[str, str], ...], frozenset[str], str | None]:
        """Return the expanded redirections, the tags of substituted data, and the text that a
        redirection supplies as standard input (None if there is none)."""
        expanded_redirects: list[tuple[str, str]] = []
        tags: set[str] = set()
        text: str | None = None
        for redirect in redirects:
            if redirect.operator in {"<<", "<<-"}:
                expanded = None if redirect.literal else self.expander.heredoc(redirect.target)
                text = redirect.target if expanded is None else expanded.words[0]
                tags |= expanded.tags if expanded else set()
                continue
            process = self.expander.process(redirect.target)
            if process is not None:
                tags |= process[1].tags
                text = process[1].text if redirect.operator == "<" else text
                expanded_redirects.append((redirect.operator, "/dev/fd/63"))
                continue
            expanded = self.expander.words(redirect.target)
            tags |= expanded.tags
            word = " ".join(expanded.words)
            if redirect.operator == "<<<":
                text = word + "\n"
            else:
                expanded_redirects.append((redirect.operator, word))
        return tuple(expanded_redirects), frozenset(tags), text


def split_words(text: str) -> list[str]:
    """Split a text into words as `xargs` does."""
    try:
        return shlex.split(text[:20_000], comments=False)
    except ValueError:
        return re.split(r"\s+", text[:20_000].strip())


def _is_descriptor(target: str) -> bool:
    return target == "-" or target.rstrip("-").isdigit()


def _calls_itself_twice(name: str, body: list[Pipeline]) -> bool:
    """Return True if a function pipes into itself, as in the fork bomb `:(){ :|:& };:`."""
    return any(sum(stage.words[:1] == [name] for stage in pipeline) > 1 for pipeline in body)
