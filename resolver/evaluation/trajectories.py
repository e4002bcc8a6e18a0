"""Reads what other agents did: trajectories in ATIF and of mini-swe-agent, and Resolver's own logs.

All become events of commands and their results, as an event log has them, so that the recorded
commands can be executed again in Resolver's sandbox.

Sources: https://www.harborframework.com/docs/agents/trajectory-format,
https://mini-swe-agent.com/latest/usage/output_files/
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from resolver.agents.tools.calls import parse_action
from resolver.agents.tools.registry import TOOLS
from resolver.errors import UsageError
from resolver.events.actions import CmdRun, SandboxAction
from resolver.events.base import Source
from resolver.events.lifecycle import roots_of
from resolver.events.log import Event, parse_logged_event
from resolver.events.observations import CmdOutput
from resolver.storage.event_table import open_log

MAX_TRAJECTORY_BYTES = 200_000_000
DEFAULT_ROOT = "/testbed"
"""Folder in which such recordings usually have their repository."""

_BASH_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t\r]*\n(.*?)\n?```", re.DOTALL)
_MINI_RESULT = re.compile(
    r"<returncode>(-?\d{1,6})</returncode>\s*(?:<output>\n?(.*?)\n?</output>)?", re.DOTALL
)
_SUBMIT = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_SHELL_TOOLS = frozenset(
    {"execute_bash", "bash", "bash_command", "shell", "terminal", "run_command", "cmd_run"}
)
_WITHOUT_EFFECT = frozenset({"finish", "submit", "think", "mark_task_complete"})
MAX_ROOTS = 10
MAX_NESTED_TRAJECTORIES = 5
"""Depth of subagents of subagents that is read."""
_COMMAND_ARGUMENTS = ("command", "keystrokes", "cmd", "script")


@dataclass(frozen=True)
class RecordedTrajectory:
    """The recorded actions of an agent.

    id: name of the task, "" if the file does not say. events: commands and their results.
    patch: the submitted change, None if the file has none. roots: paths of the repository.
    left_out: number of actions that can't be executed again, such as calls of other tools.
    is_trimmed: True if other agents recorded the outputs, most of which remove space at the end.
    Here all of them are without it.
    """

    id: str
    events: tuple[Event, ...]
    patch: bytes | None
    roots: tuple[str, ...]
    left_out: int = 0
    is_trimmed: bool = True


def read_trajectory(path: Path) -> RecordedTrajectory:
    """Return the trajectory in a file, or in the output folder of a run.

    Raises UsageError if the format is not known.
    """
    if path.is_dir() or path.suffix == ".jsonl":
        return _read_own_log(path)
    try:
        if path.stat().st_size > MAX_TRAJECTORY_BYTES:
            raise UsageError(f"{path} is too large", "give a smaller trajectory")
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", "check the path") from None
    return parse_trajectory(text, str(path))


def parse_trajectory(text: str, name: str) -> RecordedTrajectory:
    """Return the trajectory in a text of JSON. Raises UsageError if the format is not known."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}", "give a trajectory") from None
    if isinstance(data, dict) and isinstance(data.get("messages"), list):
        return _from_mini(data)
    if isinstance(data, dict) and str(data.get("schema_version", "")).startswith("ATIF-"):
        return _from_atif(data)
    raise UsageError(
        f"{name} is not a trajectory that Resolver can read",
        "give a file in ATIF, a .traj.json of mini-swe-agent, or a log of Resolver",
    )


def _read_own_log(path: Path) -> RecordedTrajectory:
    events = tuple(open_log(str(path)))
    patch = (path if path.is_dir() else path.parent) / "patch.diff"
    content = patch.read_bytes() if patch.is_file() else None
    return RecordedTrajectory("", events, content, roots_of(events), is_trimmed=False)


def _from_mini(data: Mapping[str, Any]) -> RecordedTrajectory:
    """Return the trajectory of mini-swe-agent, in which each command has a shell of its own."""
    messages = [m for m in data["messages"] if isinstance(m, dict)]
    pairs: list[tuple[str, str, int | None]] = []
    for message, following in zip(messages, [*messages[1:], {}], strict=True):
        if message.get("role") != "assistant":
            continue
        blocks = _BASH_BLOCK.findall(_text(message.get("content")))
        result = _MINI_RESULT.search(_text(following.get("content")))
        # A reply without exactly one command was not executed. The submission changes nothing.
        if len(blocks) != 1 or result is None or any(word in blocks[0] for word in _SUBMIT):
            continue
        command = f"(cd {DEFAULT_ROOT}\n{blocks[0].strip()}\n)"
        pairs.append((command, (result[2] or "").rstrip(), int(result[1])))
    info = data.get("info")
    submission = info.get("submission") if isinstance(info, dict) else None
    return RecordedTrajectory(
        id=_text(data.get("instance_id")),
        events=_as_events(pairs),
        patch=submission.encode("utf-8", "replace") if isinstance(submission, str) else None,
        roots=(DEFAULT_ROOT,),
    )


def _from_atif(data: Mapping[str, Any]) -> RecordedTrajectory:
    events: list[Event] = []
    left_out = _add_atif_events(data, events, MAX_NESTED_TRAJECTORIES)
    extra = data.get("extra")
    known = extra if isinstance(extra, dict) else {}
    roots = known.get("roots")
    listed = roots[:MAX_ROOTS] if isinstance(roots, list) else []
    paths = tuple(root for root in listed if isinstance(root, str) and root.startswith("/"))
    return RecordedTrajectory(
        id=_text(known.get("task_id") or known.get("instance_id")),
        events=tuple(events),
        patch=None,
        roots=paths or (DEFAULT_ROOT,),
        left_out=left_out,
    )


def _add_atif_events(data: Mapping[str, Any], events: list[Event], depth: int) -> int:
    """Append the executed calls of a trajectory and their results; return how many are left out.

    Those of a subagent come where the call that started it has its result.
    """
    left_out = 0
    nested = {
        _text(subagent.get("trajectory_id")): subagent for subagent in _objects(_subagents(data))
    }
    for step in _objects(data.get("steps")):
        observation = step.get("observation")
        results = _objects(observation.get("results") if isinstance(observation, dict) else None)
        answers: dict[str, Mapping[str, Any]] = {}
        for result in results:
            answers.setdefault(_text(result.get("source_call_id")), result)
        for call in _objects(step.get("tool_calls")):
            answer = answers.get(_text(call.get("tool_call_id")), {})
            references = _objects(answer.get("subagent_trajectory_ref"))
            found = [
                nested.pop(_text(reference.get("trajectory_id")), None) for reference in references
            ]
            inner = [subagent for subagent in found if subagent is not None]
            if inner and depth:
                left_out += sum(_add_atif_events(subagent, events, depth - 1) for subagent in inner)
                continue
            action = _action_of(call)
            if action is None:
                left_out += _text(call.get("function_name")) not in _WITHOUT_EFFECT
                continue
            number = len(events)
            recorded = action.model_copy(update={"id": number, "source": Source.AGENT})
            events.append(parse_logged_event(recorded.model_dump(mode="json")))
            events.append(_atif_result(action, answer, number))
    return left_out


def _subagents(data: Mapping[str, Any]) -> Any:
    return data.get("subagent_trajectories")


def _action_of(call: Mapping[str, Any]) -> SandboxAction | None:
    """Return the action of a call: of a shell, or of one of Resolver's tools in the sandbox."""
    command = _command_of(call)
    if command is not None:
        return CmdRun(id=0, command=command)
    name, arguments = _text(call.get("function_name")), call.get("arguments")
    if name not in TOOLS or not isinstance(arguments, dict):
        return None
    action = parse_action(name, arguments)
    return action if isinstance(action, SandboxAction) else None


def _atif_result(action: SandboxAction, answer: Mapping[str, Any], number: int) -> Event:
    """Return the result of an action. Its fields are known if Resolver wrote the trajectory."""
    extra = answer.get("extra")
    given = extra if isinstance(extra, dict) else {}
    content = _text(answer.get("content")).rstrip()
    # Most formats don't say how a command ended; 0 is the most likely.
    assumed = {"exit_code": 0} if isinstance(action, CmdRun) else {}
    fields = {**assumed, **given, "id": number + 1, "cause": number, "content": content}
    try:
        observation = action.observation.model_validate(fields)
        return parse_logged_event(observation.model_dump(mode="json"))
    except ValidationError:
        code = given.get("exit_code")
        exit_code = code if isinstance(code, int) else 0
        return CmdOutput(id=number + 1, cause=number, content=content, exit_code=exit_code)


def _command_of(call: Mapping[str, Any]) -> str | None:
    """Return the shell command of a tool call; None if it is the call of another tool."""
    arguments = call.get("arguments")
    if _text(call.get("function_name")) not in _SHELL_TOOLS or not isinstance(arguments, dict):
        return None
    values = (arguments.get(name) for name in _COMMAND_ARGUMENTS)
    return next((v.rstrip("\n") for v in values if isinstance(v, str) and v.strip()), None)


def _as_events(pairs: Sequence[tuple[str, str, int | None]]) -> tuple[Event, ...]:
    events: list[Event] = []
    for command, output, exit_code in pairs:
        number = len(events)
        events.append(CmdRun(id=number, command=command, source=Source.AGENT))
        events.append(
            CmdOutput(id=number + 1, cause=number, content=output, exit_code=exit_code or 0)
        )
    return tuple(events)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text; the text parts of a message that has several parts."""
    if isinstance(value, list):
        return "\n".join(_texts(value))
    return value if isinstance(value, str) else ""


def _texts(parts: Iterable[Any]) -> list[str]:
    return [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
