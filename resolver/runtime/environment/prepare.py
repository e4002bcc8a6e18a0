"""Runs the set-up in the sandbox before the agent starts, with its output in the event log."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase, Source
from resolver.events.lifecycle import Warned
from resolver.events.log import Observation, SandboxAction
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.runtime.environment.plan import SetupPlan

SCRIPT: Final = "setup.sh"
EXPORTS: Final = "setup.env"
TAIL: Final = 3_000
"""Number of characters of a failed set-up's output that the agent and people are shown."""

# `export -p` prints the variables in a form that bash can read again. GITHUB_ENV and GITHUB_PATH
# work as in a workflow, a value of several lines (NAME<<DELIMITER) included:
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
_WRAPPER: Final = r"""
S=${BASH_SOURCE[0]%/*}
export GITHUB_ENV=$S/setup.github_env GITHUB_PATH=$S/setup.github_path
: >"$GITHUB_ENV"; : >"$GITHUB_PATH"
resolver_take_env() {
  local line value end
  while IFS= read -r line; do
    if [[ $line =~ ^([A-Za-z_][A-Za-z0-9_]*)\<\<(.+)$ ]]; then
      local name=${BASH_REMATCH[1]}
      end=${BASH_REMATCH[2]} value=
      while IFS= read -r line && [[ $line != "$end" ]]; do value+=${value:+$'\n'}$line; done
      export "$name=$value"
    elif [[ $line =~ ^([A-Za-z_][A-Za-z0-9_]*)=(.*)$ ]]; then
      export "${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
    fi
  done <"$GITHUB_ENV"
  while IFS= read -r line; do [[ -n $line ]] && export PATH=$line:$PATH; done <"$GITHUB_PATH"
  : >"$GITHUB_ENV"; : >"$GITHUB_PATH"
}
resolver_keep_exports() {
  resolver_take_env
  unset GITHUB_ENV GITHUB_PATH PWD OLDPWD SHLVL _
  export -p >"$S/setup.env"
}
trap 'resolver_status=$?; resolver_keep_exports; exit $resolver_status' EXIT
"""


class SetupSandbox(Protocol):
    """The part of a Runtime that the set-up uses."""

    @property
    def scratch(self) -> str: ...

    def put_file(self, name: str, content: bytes) -> None: ...

    def execute(self, action: SandboxAction) -> Observation: ...

    def settle(self, base: str) -> Any: ...


@dataclass(frozen=True)
class PreparedEnvironment:
    """Result of the set-up. ok: it ended with exit code 0. warnings: texts for people."""

    ok: bool
    warnings: tuple[str, ...] = ()


def prepare(
    plan: SetupPlan,
    sandbox: SetupSandbox,
    stream: EventStream,
    state: State,
    base: str,
    seconds: float,
) -> PreparedEnvironment:
    """Run the set-up. The variables that it exports are set in the agent's shell afterwards.

    Its changes of tracked files are undone, and its untracked files stay out of the change: the
    set-up makes the environment, not the fix. If it fails, the agent and people are told, with the
    end of its output, and the run continues.
    base: the commit that is checked out.
    seconds: time limit of the set-up.
    """
    _conclude_cut_off(stream, state)
    sandbox.put_file(SCRIPT, f"{_WRAPPER}\n{plan.script}\n".encode())
    command = f"bash {sandbox.scratch}/{SCRIPT}"
    thought = render("run/setup.md.j2", plan=plan).strip()
    done = _run(a.CmdRun(command=command, timeout=seconds, thought=thought), sandbox, stream)
    warnings = [render("run/setup_left_out.md.j2", plan=plan).strip()] if plan.left_out else []
    ok = isinstance(done, o.CmdOutput) and done.exit_code == 0
    if not ok:
        _interrupt_if_running(done, sandbox, stream)
        told = {"plan": plan, "done": done, "tail": done.content[-TAIL:], "seconds": seconds}
        message = render("agent/setup_failed.md.j2", **told).strip()
        stream.add(Warned(about="setup", message=message, to_agent=True))
        warnings.append(render("run/setup_failed.md.j2", **told).strip())
    take_exports(sandbox, stream)
    undone = sandbox.settle(base)["restored"]
    if undone:
        warnings.append(render("run/setup_undone.md.j2", plan=plan, paths=undone).strip())
    return PreparedEnvironment(ok, tuple(warnings))


def take_exports(sandbox: SetupSandbox, stream: EventStream) -> None:
    """Set the variables exported by the set-up in the agent's shell.

    The set-up ran in this run, or in an earlier one whose environment is used again.
    """
    file = f"{sandbox.scratch}/{EXPORTS}"
    _run(a.CmdRun(command=f"if [ -f {file} ]; then . {file}; fi"), sandbox, stream)


def _run(action: a.CmdRun, sandbox: SetupSandbox, stream: EventStream) -> ObservationBase:
    added = stream.add(action.model_copy(update={"source": Source.ENVIRONMENT}))
    observation = sandbox.execute(added)
    return stream.add(observation.model_copy(update={"cause": added.id}))


def _interrupt_if_running(
    done: ObservationBase, sandbox: SetupSandbox, stream: EventStream
) -> None:
    """End a set-up that exceeded its time and still runs: the next command ends it and says so."""
    if isinstance(done, o.CmdOutput) and done.exit_code is None:
        _run(a.CmdRun(command=":"), sandbox, stream)


def _conclude_cut_off(stream: EventStream, state: State) -> None:
    """Add an error for a set-up that was cut off when its process ended. It will be run again."""
    for action in list(state.pending.values()):
        if action.source is Source.ENVIRONMENT:
            words = render("run/setup_cut_off.md.j2").strip()
            stream.add(o.ErrorObservation(content=words, code="cut_off", cause=action.id))
