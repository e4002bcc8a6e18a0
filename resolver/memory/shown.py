"""Renders observations, notes and actions as the text that a model reads, within a size limit."""

import json
from collections.abc import Container

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.memory.outcomes import command_outcome
from resolver.memory.text import marker_for, truncate_middle
from resolver.memory.turns import Note, Turn

DIED = (
    "[no result: the run was interrupted while this was under way. It may have had effects: "
    "look at the current state before you repeat it]"
)
NOT_RUN = "[not run: the run was interrupted before this call]"
AFTER_FINISH = "[not run: it came after the call that finished the work]"
_ENVELOPE = {"id", "timestamp", "source", "cause", "tool_call", "thought", "reply", "kind"}


def result_text(turn: Turn, index: int, limit: int, masked: Container[int] = ()) -> str:
    """Return the result of the turn's call at `index`. Every call gets an answer, even one that was
    interrupted or never run: providers require a result for each tool call.

    masked: ids of observations of which only the outcome is shown.
    """
    if index >= len(turn.actions):
        done = any(isinstance(x, a.Finish) for x in turn.actions)
        return AFTER_FINISH if done else NOT_RUN
    action = turn.actions[index]
    result = turn.results.get(action.id)
    if result is not None and not isinstance(result, o.Null):
        told = result.id in masked
        return masked_text(result) if told else observation_text(result, limit)
    match action:
        case a.Invalid(reason=reason):
            return truncate_middle(f"ERROR: {reason}", limit)
        case a.Think():
            return "Noted."
        case a.Finish():
            return "[the work was declared finished here, and goes on]"
        case a.Message():
            return ""
        case _:
            return DIED if result is None else "[done]"


def observation_text(observation: ObservationBase, limit: int) -> str:
    """Return the observation as the model reads it: its text, truncated to `limit` characters, then
    facts such as the exit code in square brackets."""
    match observation:
        case o.CmdOutput():
            return _command_text(observation, limit)
        case o.IPythonOutput(error=error):
            body = _body(observation.content, limit, "Print less at a time.")
            return f"{body}\n[the cell raised an error]" if error else body
        case o.McpResult(error=error):
            body = _body(observation.content, limit, "Ask for less at a time.")
            return f"{body}\n[the tool says that it failed]" if error else body
        case o.FileReadResult():
            return _body(observation.content, limit, "Read the rest with view_range.")
        case o.FileEditResult(diff=diff):
            return _body(observation.content or diff, limit, "View the file to see all of it.")
        case o.ErrorObservation(content=content):
            return truncate_middle(f"ERROR: {content}", limit)
        case o.RecallResult():
            return _recalled_text(observation, limit)
        case _:
            return _body(observation.content, limit, "")


def _recalled_text(result: o.RecallResult, limit: int) -> str:
    text = truncate_middle(result.content, limit)
    return render(
        "agent/recall.md.j2",
        text=text,
        about=result.about,
        called=result.name or result.about,
        sources=result.sources,
        why=result.why,
        marker=marker_for(text),
    ).strip()


def masked_text(observation: ObservationBase) -> str:
    """Return the text shown for a masked observation: how it ended, and how to see it again.

    It stays short, however long the observation is.
    """
    size = f"{len(observation.content)} characters"
    match observation:
        case o.CmdOutput(output_file=where, exit_code=code):
            again = f"all of it is in {where}" if where else "run the command again to see it"
            outcome = command_outcome(observation.content, 200 if code == 0 else 600)
            note = f"[output of {size} left out to save room; {again}]"
            parts = [outcome, note, _status(observation)]
        case o.IPythonOutput(error=error):
            outcome = command_outcome(observation.content) if error else ""
            note = f"[output of {size} left out to save room; run the cell again to see it]"
            parts = [outcome, note]
            parts += ["[the cell raised an error]"] if error else []
        case o.FileReadResult(path=path):
            parts = [f"[{size} of {path} left out to save room; view it again if you need it]"]
        case o.BrowserOutput(url=url):
            parts = [f"[the page {url[:300]} left out to save room; open it again if you need it]"]
        case _:
            parts = [f"[{size} left out to save room]"]
    return "\n".join(part for part in parts if part)


def _body(content: str, limit: int, hint: str) -> str:
    text = content.rstrip("\n")
    return truncate_middle(text, limit, hint) if text.strip() else "[no output]"


def _command_text(output: o.CmdOutput, limit: int) -> str:
    where = output.output_file
    hint = (
        f"The whole output is in {where}: use sed, grep or tail on it."
        if where
        else "Send the output to a file in /tmp to read it in parts."
    )
    text = _body(output.content, limit, hint)
    if output.omitted and len(output.content) > limit:
        # the note of the sandbox on what it left out was in the middle, which is now gone too
        text += f"\n[{output.omitted} more bytes had been left out before.]"
    return f"{text}\n{_status(output)}"


def _status(output: o.CmdOutput) -> str:
    status = f"exit code {output.exit_code}" if output.exit_code is not None else "still running"
    return f"[{status}, in {output.cwd}]" if output.cwd else f"[{status}]"


def note_text(note: Note, limit: int) -> str:
    """Return a note as the model reads it. The user's messages are never truncated."""
    match note:
        case a.Message(content=content):
            return content
        case life.Warned(message=message):
            return f"[{message}]"
        case _:
            return observation_text(note, limit)


def action_text(action: ActionBase) -> str:
    """Return an action in one line, for actions that no reply of the model contains."""
    fields = action.model_dump(mode="json", exclude=_ENVELOPE, exclude_none=True)
    if isinstance(action, a.Message):
        return action.content
    return f"[{getattr(action, 'kind', 'action')} {json.dumps(fields, ensure_ascii=False)}]"
