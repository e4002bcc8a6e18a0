"""Finds the test runners that a shell command starts, without executing anything."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename

from resolver.security.shell.checkers import find_check
from resolver.security.shell.checks import MAX_READ_CHARACTERS
from resolver.security.shell.syntax import Pipeline, parse
from resolver.security.shell.wrappers import MAX_WORDS, plain_word, skip_assignments, unwrap_command

MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""Programs that run the scripts of package.json."""

_DIRECT = {
    "pytest": "pytest",
    "py.test": "pytest",
    "unittest": "unittest",
    "jest": "jest",
    "vitest": "vitest",
    "mocha": "mocha",
    "_mocha": "mocha",
    "ava": "ava",
    "tap": "tap",
    "bats": "bats",
    "ctest": "ctest",
    "phpunit": "phpunit",
    "tox": "tox",
    "nox": "nox",
    "rspec": "rspec",
}
_PYTEST = frozenset(name for name, runner in _DIRECT.items() if runner == "pytest")
_PYTEST_VALUED = frozenset({"-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W"})
_PYTEST_FLAGS = frozenset(
    {
        "--verbose", "--quiet", "--exitfirst", "--showlocals", "--strict-markers",
        "--strict-config", "--pyargs", "--doctest-modules", "--disable-warnings", "--no-header",
        "--no-summary", "--full-trace", "--no-cov", "--lf", "--ff", "--sw",
    }
)  # fmt: skip
"""Long options that take no value, of pytest and of its plugin for coverage."""

_SUBCOMMANDS = {
    ("go", "test"): "go",
    ("cargo", "test"): "cargo",
    ("cargo", "t"): "cargo",
    ("cargo", "nextest"): "nextest",
    ("dotnet", "test"): "dotnet",
    ("bun", "test"): "bun",
    ("react-scripts", "test"): "jest",
}
_BUILDS = {"mvn": "maven", "mvnw": "maven", "gradle": "gradle", "gradlew": "gradle"}
_BUILD_TASKS = frozenset({"test", "check", "verify", "build", "install"})
_MAKE = frozenset({"make", "gmake"})

_SETUP = frozenset({"cd", "export", "set", "source", ".", "mkdir", "ulimit", "true", ":"})
"""Commands that prepare the shell for the command after them."""


@dataclass(frozen=True)
class SimpleCommand:
    """A simple command of a script, with its plain words.

    words: without assignments, wrappers and quotes.
    runner: the test runner that it starts, "" if it starts none.
    script: the package script that it runs, "" if it runs none.
    target: the Makefile target that it builds, "" if it builds none.
    """

    words: tuple[str, ...]
    runner: str = ""
    script: str = ""
    target: str = ""

    @property
    def only_prepares(self) -> bool:
        """True if the command runs nothing of the project."""
        return not self.words or self.words[0] in _SETUP

    @property
    def changes_folder(self) -> bool:
        """True for `cd FOLDER`; the folder is the second word."""
        return self.words[:1] == ("cd",) and len(self.words) == 2


def simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of a script in their order, those of compound commands included.

    A script that is too long to be parsed has none.
    """
    if len(command) > MAX_READ_CHARACTERS:
        return ()
    return tuple(_commands(parse(command).pipelines))


def runners_of(command: str) -> tuple[str, ...]:
    """Return the test runners that a script starts, each once, in their order."""
    return tuple(
        dict.fromkeys(simple.runner for simple in simple_commands(command) if simple.runner)
    )


def last_runner(command: str) -> str:
    """Return the runner that receives arguments appended to the command; "" if there is none.

    It is the runner of the last simple command, if that command is not part of a compound command
    and nothing of it comes after its arguments.
    """
    if len(command) > MAX_READ_CHARACTERS or "#" in command:
        return ""
    pipelines = parse(command).pipelines
    if not pipelines or len(pipelines[-1]) != 1:
        return ""
    stage = pipelines[-1][0]
    if stage.body is not None or stage.redirects or stage.is_inverted or stage.next_operator:
        return ""
    commands = tuple(_commands([pipelines[-1]]))
    return commands[0].runner if len(commands) == 1 else ""


def positional_words(command: str) -> tuple[str, ...]:
    """Return the words of the last simple command that are no options, after the program's name.

    For a package script, these are the words after the script's name.
    """
    commands = simple_commands(command)
    if not commands:
        return ()
    words, script = commands[-1].words, commands[-1].script
    start = words.index(script) if script in words else 0
    return tuple(word for word in words[start + 1 :] if word[:1] != "-")


def split_pytest_paths(command: str) -> tuple[str, tuple[str, ...]] | None:
    """Return a command that ends with pytest without the tests that it names, and their paths.

    None if the command does not end with pytest and its arguments. A word after an option that may
    take a value stays in the command.
    """
    if last_runner(command) != "pytest":
        return None
    raw = parse(command).pipelines[-1][0].words
    start = command.removesuffix(" ".join(raw))
    words = [plain_word(word) for word in raw]
    names = [number for number, word in enumerate(words) if basename(word) in _PYTEST]
    if start == command or not names:
        return None
    kept, paths = list(raw[: names[0] + 1]), list[str]()
    for number in range(names[0] + 1, len(words)):
        word, previous = words[number], words[number - 1]
        if word.startswith("-") or (number - 1 > names[0] and _takes_value(previous)):
            kept.append(raw[number])
        else:
            paths.append(word)
    return start + " ".join(kept), tuple(paths)


def _takes_value(option: str) -> bool:
    """Return True if the option of pytest, or of a plugin that is not known, may take a value."""
    if option.startswith("--"):
        return "=" not in option and option not in _PYTEST_FLAGS
    return option in _PYTEST_VALUED


def _commands(pipelines: Sequence[Pipeline]) -> Iterator[SimpleCommand]:
    # An explicit stack: scripts may nest deeply, within the parser's bound.
    stack = [iter([stage for pipeline in pipelines for stage in pipeline])]
    while stack:
        stage = next(stack[-1], None)
        if stage is None:
            stack.pop()
        elif stage.body is not None:
            if stage.kind != "function":
                stack.append(
                    iter([inner_stage for pipeline in stage.body for inner_stage in pipeline])
                )
        else:
            words = skip_assignments(stage.words[:MAX_WORDS])
            yield read_words(tuple(plain_word(word) for word in words))


def read_words(argv: tuple[str, ...]) -> SimpleCommand:
    """Return the simple command with these plain words."""
    if not argv:
        return SimpleCommand(())
    words = unwrap_command(argv)
    words = find_check(words) or words
    return SimpleCommand(words, _runner(words), _script(words), _target(words))


def _runner(words: tuple[str, ...]) -> str:
    name = basename(words[0])
    if name in _DIRECT:
        return _DIRECT[name]
    operands = [word for word in words[1:] if not word.startswith("-")]
    if name in _BUILDS:
        tasks = {word.rpartition(":")[2] for word in operands}
        return _BUILDS[name] if tasks & _BUILD_TASKS else ""
    if name == "node" and "--test" in words:
        return "node"
    if name.startswith("python") and operands[:2][-1:] == ["test"]:
        return "django" if basename(operands[0]) == "manage.py" else ""
    if name == "manage.py" and operands[:1] == ["test"]:
        return "django"
    return _SUBCOMMANDS.get((name, operands[0]), "") if operands else ""


def _script(words: tuple[str, ...]) -> str:
    """Return the package script that a command runs: `npm test`, `yarn lint`, `pnpm run lint`."""
    name = basename(words[0])
    if name not in MANAGERS:
        return ""
    operands = [word for word in words[1:] if not word.startswith("-")]
    if operands[:1] in (["run"], ["run-script"]):
        return operands[1] if len(operands) > 1 else ""
    if operands[:1] in (["test"], ["t"], ["tst"]):
        return "" if name == "bun" else "test"
    return operands[0] if name in {"yarn", "pnpm"} and operands else ""


def _target(words: tuple[str, ...]) -> str:
    if basename(words[0]) not in _MAKE:
        return ""
    options = {"-C", "-f", "--directory", "--file"}
    if any(word in options for word in words):
        return ""
    targets = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return targets[0] if len(targets) == 1 else ""
