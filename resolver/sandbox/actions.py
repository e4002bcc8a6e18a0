"""The method table of the wire: maps a method's name and parameters to its result.

It knows nothing of frames and pipes, so that it can be served over any transport.
"""

import base64
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .bash import Bash
from .change import checkout, compare_tree, export_change, set_baseline
from .changed_paths import TreeComparison
from .environment import Outputs, find_browser, shell_environment, user_name
from .ipython import IPython, KernelCommand
from .processes import Family
from .programs import Programs
from .spool import readable
from .wire import (
    ACTION_FAILED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PROGRAM_METHODS,
    PROTOCOL,
    ActionFailed,
    WireError,
)

if TYPE_CHECKING:
    from .editor import Editor

MAX_TIMEOUT_SECONDS: Final = 24 * 3600.0
"""Longest timeout in seconds for one command or cell; longer ones are reduced to it."""


class SandboxPaths(NamedTuple):
    """The folders and programs that the server works with. All paths are absolute."""

    root: str
    scratch: str
    bash: str
    git: str
    python: str
    tools: str | None  # folder appended to the image's own PATH
    keep_environment: bool
    variables: Mapping[str, str]
    proxy: int  # its port on loopback; 0 if there is none


class Actions:
    """The live sessions of one sandbox.

    Call `run` from one thread only, except for PROGRAM_METHODS. Those, `interrupt` and `last_lines`
    may be called from any thread.
    """

    def __init__(self, paths: SandboxPaths, family: Family, kernel: tuple[str, ...]) -> None:
        self._paths = paths
        os.makedirs(paths.scratch, mode=0o700, exist_ok=True)
        environment = shell_environment(
            os.environ, paths.keep_environment, paths.tools, paths.variables, paths.bash
        )
        outputs = Outputs(paths.scratch)
        self._bash = Bash(family, paths.bash, environment, paths.root, outputs)
        command = KernelCommand(kernel, environment, paths.root)
        self._ipython = IPython(family, command, outputs)
        self._family = family
        self._environment = environment
        self._editor: Editor | None = None
        self._programs = Programs(family, environment, paths.root)
        self._background = ThreadPoolExecutor(max_workers=1)
        self._comparison: Future[TreeComparison] | None = None

    def run(self, method: str, params: object) -> dict[str, Any]:
        """Run a method of the table and return its result. Raises WireError."""
        changes_files = method in self.CHANGING_METHODS
        action = (self.CHANGING_METHODS if changes_files else self.METHODS).get(method)
        if action is None:
            raise WireError(METHOD_NOT_FOUND, f"there is no method {method!r}")
        try:
            if method not in PROGRAM_METHODS:
                self._await_comparison()
            result = {**action(self, Parameters(params))}
            if changes_files:
                result |= self._changes()
        except ActionFailed as failure:
            raise WireError(ACTION_FAILED, readable(str(failure))) from failure
        except OSError as error:
            raise WireError(ACTION_FAILED, readable(f"{method}: {error}")) from error
        return {name: _clean(value) for name, value in result.items()}

    def hello(self) -> dict[str, Any]:
        """Return the result of `hello`; see wire.Hello."""
        return {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "root": self._paths.root,
            "python": ".".join(map(str, sys.version_info[:3])),
            "user": user_name(),
            "browser": find_browser(self._environment),
            "proxy": self._paths.proxy,
        }

    def interrupt(self) -> bool:
        """Interrupt the running command or cell; return False if nothing is running."""
        return any(session.interrupt() for session in (self._bash, self._ipython))

    def close(self) -> None:
        """End all sessions."""
        self._bash.close()
        self._ipython.close()
        self._programs.close()

    def _run_command(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._bash.run(
            parameters.text("command"), parameters.seconds(), parameters.flag("is_input")
        )

    def _run_cell(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._ipython.run(parameters.text("code"), parameters.seconds())

    def _opened_editor(self) -> "Editor":
        # It imports parsers, to check the syntax of what it writes, and the first action is most
        # often a command.
        from .editor import Editor

        if self._editor is None:
            self._editor = Editor(self._paths.root, self._paths.scratch)
        return self._editor

    def _view(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._opened_editor().view(parameters.text("path"), parameters.lines("view_range"))

    def _create(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._opened_editor().create(parameters.text("path"), parameters.text("file_text"))

    def _str_replace(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._opened_editor().str_replace(
            parameters.text("path"), parameters.text("old_str"), parameters.text("new_str")
        )

    def _insert(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._opened_editor().insert(
            parameters.text("path"), parameters.number("insert_line"), parameters.text("new_str")
        )

    def _undo_edit(self, parameters: "Parameters") -> Mapping[str, Any]:
        return self._opened_editor().undo_edit(parameters.text("path"))

    def _checkout(self, parameters: "Parameters") -> Mapping[str, Any]:
        git_dir, paths = parameters.text("git_dir"), self._paths
        commit, branch = parameters.text("commit"), parameters.text("branch")
        return checkout(paths.root, git_dir, commit, branch, paths.git, paths.scratch)

    def _set_baseline(self, parameters: "Parameters") -> Mapping[str, Any]:
        paths = self._paths
        return set_baseline(paths.root, paths.scratch, parameters.text("base"), paths.git)

    def _report_changes(self, _: "Parameters") -> Mapping[str, Any]:
        self._await_comparison()
        paths = self._paths
        # Git needs tens of milliseconds to read the tree's present state, and seconds in a large
        # repository. The next action waits for it; the host can continue until then.
        self._comparison = self._background.submit(
            compare_tree, paths.root, paths.scratch, paths.git
        )
        return {}

    def _await_comparison(self) -> None:
        """Wait until the state of the tree before the first action is known."""
        # A tree that can't be compared in time costs the reports, not the run.
        if self._comparison is not None and self._comparison.exception() is not None:
            self._comparison = None

    def _changes(self) -> Mapping[str, Any]:
        """Return what has changed in the working tree since the last result."""
        if self._comparison is not None:
            try:
                changed = self._comparison.result().take()
                return {
                    "changed": changed.paths,
                    "changed_count": changed.total,
                    "differing": changed.differing,
                    "repositories": changed.repositories,
                }
            except (ActionFailed, OSError):
                # The action itself succeeded. Without git nothing can be said about its changes.
                self._comparison = None
        return {"changed": None, "changed_count": 0, "differing": 0, "repositories": []}

    def _export_change(self, parameters: "Parameters") -> Mapping[str, Any]:
        paths = self._paths
        return export_change(paths.root, paths.scratch, parameters.text("base"), paths.git)

    def _start_program(self, parameters: "Parameters") -> Mapping[str, Any]:
        number = self._programs.start(parameters.text("command"), parameters.texts("arguments"))
        return {"program": number}

    def _read_program(self, parameters: "Parameters") -> Mapping[str, Any]:
        number, seconds = parameters.number("program"), parameters.seconds()
        data, ended, stderr_tail = self._programs.read(number, seconds)
        encoded = base64.b64encode(data).decode()
        return {"data": encoded, "ended": ended, "stderr_tail": stderr_tail}

    def _write_program(self, parameters: "Parameters") -> Mapping[str, Any]:
        self._programs.write(parameters.number("program"), parameters.text("data"))
        return {}

    def _end_program(self, parameters: "Parameters") -> Mapping[str, Any]:
        self._programs.end(parameters.number("program"))
        return {}

    CHANGING_METHODS: Final[Mapping[str, "Method"]] = {
        "run_command": _run_command,
        "run_cell": _run_cell,
        "create": _create,
        "str_replace": _str_replace,
        "insert": _insert,
        "undo_edit": _undo_edit,
    }
    """Methods that execute the agent's actions and can change files. See wire.ReportedChanges."""

    METHODS: Final[Mapping[str, "Method"]] = {
        "view": _view,
        "checkout": _checkout,
        "set_baseline": _set_baseline,
        "report_changes": _report_changes,
        "export_change": _export_change,
        "start_program": _start_program,
        "read_program": _read_program,
        "write_program": _write_program,
        "end_program": _end_program,
    }
    """The other methods that have a result, except those that the server itself answers."""


class Parameters:
    """The `params` of a request; each method returns one, checked for its type.

    Raises WireError (INVALID_PARAMS) if a parameter has another type.
    """

    def __init__(self, params: object) -> None:
        if not isinstance(params, dict):
            raise WireError(INVALID_PARAMS, "params must be an object")
        self._values: dict[str, object] = params

    def text(self, name: str) -> str:
        """Return a string, in which lone surrogates are replaced."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self._type_error(name, "a string")
        return readable(value) if not value.isascii() and _has_surrogates(value) else value

    def texts(self, name: str) -> list[str]:
        """Return a list of strings."""
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._type_error(name, "a list of strings")
        return [readable(item) for item in value]

    def number(self, name: str) -> int:
        """Return an integer; True and False do not count as one."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._type_error(name, "an integer")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is absent."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._type_error(name, "true or false")
        return value

    def seconds(self) -> float:
        """Return `timeout` in seconds, at most MAX_TIMEOUT_SECONDS."""
        value = self._values.get("timeout")
        if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
            raise self._type_error("timeout", "a number of seconds")
        return float(min(value, MAX_TIMEOUT_SECONDS))

    def lines(self, name: str) -> tuple[int, int] | None:
        """Return a pair of integers; None if it is absent or null."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, list) and len(value) == 2:
            first, last = value
            if type(first) is int and type(last) is int:
                return first, last
        raise self._type_error(name, "null or two integers")

    def _type_error(self, name: str, expected: str) -> WireError:
        return WireError(INVALID_PARAMS, f"{name} must be {expected}")


Method = Callable[[Actions, Parameters], Mapping[str, Any]]


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _clean(value: object) -> object:
    return readable(value) if isinstance(value, str) else value
