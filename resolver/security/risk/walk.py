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
from resolver.security.shell.wrappers import unwrapped

DEEPEST = 10
"""Maximum depth of scripts that run scripts."""

MOST_TEXT = 400_000
"""Maximum characters that are read for one action; nested scripts count again."""

MOST_CALLS = 5_000

MOST_WORDS = 2_000
"""Maximum words of one command that are looked at."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "mksh"})

LITERAL = "literal"
"""Tag of data that is written in the command itself, for example a here-document."""


@dataclass(frozen=True)
class ShellCall:
    """Represents one command.

    argv: the expanded words without wrappers such as `sudo`; never empty.
    raw: the words as written.
    stdin: the data on standard input.
    tags: origins of the data that was substituted into the words.
    redirects: pairs of operator and target.
    paths: interprets the command's paths.
    as_root: the command runs as another user, by `sudo` or `doas`.
    """

    argv: tuple[str, ...]
    raw: tuple[str, ...]
    stdin: Flow
    tags: frozenset[str]
    redirects: tuple[tuple[str, str], ...]
    paths: Paths
    as_root: bool = False

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
        found, only = [], False
        for arg in self.args:
            if arg == "--" and not only:
                only = True
            elif only or not arg.startswith("-") or arg == "-":
                found.append(arg)
        return tuple(found)

    def has(self, letters: str, *names: str) -> bool:
        """Return True if one of the short options `letters` or of the options `names` is given."""
        for arg in self.args:
            if arg.startswith("--"):
                if arg.partition("=")[0] in names:
                    return True
            elif arg in names or (arg.startswith("-") and any(c in arg[1:] for c in letters)):
                return True
        return False

    @cached_property
    def text(self) -> str:
        """The command on one line, for people."""
        return " ".join(self.argv)

    @cached_property
    def writes_to(self) -> tuple[str, ...]:
        """Targets of the redirections that write, without file descriptors."""
        writing = {">", ">>", ">|", "&>", "&>>", "<>", ">&"}
        return tuple(t for o, t in self.redirects if o in writing and not _is_descriptor(t))

    @cached_property
    def reads_from(self) -> tuple[str, ...]:
        """Targets of the redirections that read."""
        return tuple(t for o, t in self.redirects if o in {"<", "<>"})


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
    text_left: int = MOST_TEXT
    calls_left: int = MOST_CALLS

    def run(self, text: str) -> Flow:
        """Walk the text as a script and return what it writes."""
        self.text_left -= len(text)
        if self.depth >= DEEPEST or self.text_left < 0 or self.calls_left < 0:
            self._too_much()
            return Flow()
        self.depth += 1
        try:
            script = parse(text)
            self.functions.update(script.functions)
            for name, body in script.functions.items():
                if _calls_itself_twice(name, body):
                    self.findings.append(high("fork_bomb", f"{name} starts itself without end"))
                self._nested(body)
            return self._pipelines(script.pipelines)
        finally:
            self.depth -= 1

    def substituted(self, text: str) -> Flow:
        """Walk the text in a subshell, whose directory and variables don't outlive it."""
        before, variables = self.paths, dict(self.variables)
        flow = self.run(text)
        self.paths, self.variables = before, variables
        return flow

    def _too_much(self) -> None:
        found = medium("obscure", "too long or too deeply nested to be read")
        if found not in self.findings[-1:]:
            self.findings.append(found)

    def _pipelines(self, pipelines: list[Pipeline]) -> Flow:
        flows = [self._pipeline(pipeline) for pipeline in pipelines]
        texts = [flow.text for flow in flows if flow.text != ""]
        tags = frozenset[str]().union(*(flow.tags for flow in flows))
        known = all(text is not None for text in texts)
        return Flow("".join(text or "" for text in texts) if known else None, tags)

    def _pipeline(self, pipeline: Pipeline) -> Flow:
        flow = Flow("")
        before = self.paths
        for stage in pipeline:
            flow = self._stage(stage, flow)
        if len(pipeline) > 1:
            self.paths = before  # each part of a pipeline runs in a subshell
        return flow

    def _nested(self, body: list[Pipeline]) -> Flow:
        if self.depth >= DEEPEST * 4 or self.calls_left < 0:
            self._too_much()
            return Flow()
        self.depth += 1
        try:
            return self._pipelines(body)
        finally:
            self.depth -= 1

    def _stage(self, stage: PipelineStage, stdin: Flow) -> Flow:
        if stage.body is None:
            return self._simple(stage, stdin)
        if stage.kind == "function":
            return Flow("")
        before = self.paths
        self._loop_variable(stage, stdin)
        flow = self._nested(stage.body)
        if stage.kind == "(":
            self.paths = before
        redirects, tags, text = self._redirected(stage.redirects)
        flow = Flow(flow.text, flow.tags | stdin.tags)
        call = ShellCall(
            (stage.kind,), (stage.kind,), Flow(text, stdin.tags), tags, redirects, before
        )
        self.findings.extend(self.rules(call, self))
        return flow

    def _loop_variable(self, stage: PipelineStage, stdin: Flow) -> None:
        """Set the variable of a loop. Its first value stands for all of them."""
        if stage.kind in {"for", "select"} and stage.words:
            name, values = stage.words[0], stage.words[2:]
            found = Flow(None)
            for raw in values[:1]:
                expanded = self.expander.words(raw)
                first = expanded.words[0] if expanded.words else None
                found = Flow(first, frozenset(expanded.tags))
            self.variables[name] = found
        elif stage.kind in {"while", "until"} and stage.body and stage.body[0]:
            words = stage.body[0][-1].words
            reads = [w for w in words if not w.startswith("-")]
            if "read" in reads:
                for name in reads[reads.index("read") + 1 :]:
                    self.variables[name] = Flow(None, stdin.tags)

    @property
    def expander(self) -> Expander:
        """Expands words with the current variables."""
        return Expander(self.variables, self.substituted)

    def _simple(self, stage: PipelineStage, stdin: Flow) -> Flow:
        self.calls_left -= 1
        if self.calls_left < 0:
            return Flow()
        words, sets = self._split_assignments(stage.words)
        argv: list[str] = []
        tags: set[str] = set()
        for raw in words[: MOST_WORDS + 1]:
            process = self.expander.process(raw)
            # a process substitution is passed to the command as the path of a descriptor
            if process is not None:
                tags |= process[1].tags
                argv.append("/dev/fd/63")
                continue
            expanded = self.expander.words(raw)
            tags |= expanded.tags
            argv.extend(expanded.words)
        if len(argv) > MOST_WORDS:
            argv = argv[:MOST_WORDS]
            self._too_much()
        redirects, more, text = self._redirected(stage.redirects)
        if text is not None:
            stdin = Flow(text, frozenset({LITERAL}) | more)
        for name, flow in sets:
            self.variables[name] = flow
        call = ShellCall(
            tuple(argv) or ("",), tuple(words), stdin, frozenset(tags) | more, redirects, self.paths
        )
        return self.call(call)

    def call(self, call: ShellCall) -> Flow:
        """Evaluate one command and what it runs; return what it writes."""
        self.calls_left -= 1
        self.text_left -= sum(map(len, call.argv))
        if self.calls_left < 0 or self.text_left < 0:
            self._too_much()
            return Flow()
        call = unwrapped_call(call)
        self.findings.extend(self.rules(call, self))
        if call.name == "cd" and len(call.argv) > 1:
            self.paths = self.paths.to(call.operands[0] if call.operands else "~")
        elif call.name in {"cd", "pushd"}:
            self.paths = self.paths.to((*call.operands, "~")[0])
        elif call.name in {"export", "declare", "local", "readonly", "typeset"}:
            self._declare(call)
        elif call.name == "read":
            for name in call.operands:
                self.variables[name] = Flow(None, call.stdin.tags)
        flow = self.output(call, self)
        for target in call.writes_to:
            path = call.paths.absolute(target)
            if flow.text is not None:
                self.written[path] = (self.written.get(path, "") + flow.text)[:MOST_TEXT]
            if "fetched" in flow.tags:
                self.fetched.add(path)
        return flow

    def _declare(self, call: ShellCall) -> None:
        for word in call.args:
            found = assignment(word)
            if found is not None:
                self.variables[found[0]] = Flow(found[1], call.tags)

    def _split_assignments(self, words: list[str]) -> tuple[list[str], list[tuple[str, Flow]]]:
        """Split the words into those after the assignments, and what the assignments set."""
        sets: list[tuple[str, Flow]] = []
        for index, raw in enumerate(words):
            found = assignment(raw)
            if found is None:
                return words[index:], sets
            expanded = self.expander.text(found[1])
            sets.append((found[0], Flow(expanded.words[0], frozenset(expanded.tags))))
        return [], sets

    def _redirected(
        self, redirects: list[Redirect]
    ) -> tuple[tuple[tuple[str, str], ...], frozenset[str], str | None]:
        """Return the expanded redirections, the tags of substituted data, and the text that a
        redirection supplies as standard input (None if there is none)."""
        found: list[tuple[str, str]] = []
        tags: set[str] = set()
        text: str | None = None
        for each in redirects:
            if each.operator in {"<<", "<<-"}:
                expanded = None if each.literal else self.expander.heredoc(each.target)
                text = each.target if expanded is None else expanded.words[0]
                tags |= expanded.tags if expanded else set()
                continue
            process = self.expander.process(each.target)
            if process is not None:
                tags |= process[1].tags
                text = process[1].text if each.operator == "<" else text
                found.append((each.operator, "/dev/fd/63"))
                continue
            expanded = self.expander.words(each.target)
            tags |= expanded.tags
            word = " ".join(expanded.words)
            if each.operator == "<<<":
                text = word + "\n"
            else:
                found.append((each.operator, word))
        return tuple(found), frozenset(tags), text


def unwrapped_call(call: ShellCall) -> ShellCall:
    """Return the call of the innermost command: wrappers such as `sudo` or `timeout` removed."""
    argv, as_root = unwrapped(call.argv)
    return replace(call, argv=argv, as_root=as_root) if argv != call.argv else call


def as_call(call: ShellCall, argv: Iterable[str], stdin: Flow | None = None) -> ShellCall | None:
    """Return a call of a command that `call` runs, in the same directory; None for no words."""
    words = tuple(argv)
    if not words:
        return None
    flow = call.stdin if stdin is None else stdin
    return replace(call, argv=words, stdin=flow, redirects=())


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
