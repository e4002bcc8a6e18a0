"""How events look to the model: each observation and note as text, within a bound."""

import json

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase
from resolver.memory.text import cut_middle
from resolver.memory.turns import Note, Turn
from resolver.templates import render

DIED = (
    "[no result: the run was interrupted while this was under way. It may have had effects: "
    "look at the current state before you repeat it]"
)
NOT_RUN = "[not run: the run was interrupted before this call]"
AFTER_FINISH = "[not run: it came after the call that finished the work]"
_ENVELOPE = {"id", "timestamp", "source", "cause", "tool_call", "thought", "reply", "kind"}


def result_text(turn: Turn, index: int, limit: int) -> str:
    """What came of the turn's call number `index`; every call has an answer, whatever happened."""
    if index >= len(turn.actions):
        done = any(isinstance(x, a.Finish) for x in turn.actions)
        return AFTER_FINISH if done else NOT_RUN
    action = turn.actions[index]
    result = turn.results.get(action.id)
    if result is not None and not isinstance(result, o.Null):
        return observation_text(result, limit)
    match action:
        case a.Invalid(reason=reason):
            return cut_middle(f"ERROR: {reason}", limit)
        case a.Think():
            return "Noted."
        case a.Finish():
            return "[the work was declared finished here, and goes on]"
        case a.Message():
            return ""
        case _:
            return DIED if result is None else "[done]"


def observation_text(observation: ObservationBase, limit: int) -> str:
    """The observation as the model reads it: its text, cut to `limit` characters, and the facts
    that came with it in square brackets."""
    match observation:
        case o.CmdOutput():
            return _command_text(observation, limit)
        case o.IPythonOutput(error=error):
            body = _body(observation.content, limit, "Print less at a time.")
            return f"{body}\n[the cell raised an error]" if error else body
        case o.FileReadResult():
            return _body(observation.content, limit, "Read the rest with view_range.")
        case o.FileEditResult(diff=diff):
            return _body(observation.content or diff, limit, "View the file to see all of it.")
        case o.ErrorObservation(content=content):
            return cut_middle(f"ERROR: {content}", limit)
        case o.RecallResult(sources=sources):
            text = cut_middle(observation.content, limit)
            return render("agent/recall.md.j2", text=text, sources=sources).strip()
        case _:
            return _body(observation.content, limit, "")


def _body(content: str, limit: int, hint: str) -> str:
    text = content.rstrip("\n")
    return cut_middle(text, limit, hint) if text.strip() else "[no output]"


def _command_text(output: o.CmdOutput, limit: int) -> str:
    where = output.output_file
    hint = (
        f"The whole output is in {where}: use sed, grep or tail on it."
        if where
        else "Send the output to a file in /tmp to read it in parts."
    )
    text = _body(output.content, limit, hint)
    if output.omitted and len(output.content) > limit:
        # the sandbox's own note on what it left out stood in the middle that is gone now
        text += f"\n[{output.omitted} more bytes had been left out before.]"
    status = f"exit code {output.exit_code}" if output.exit_code is not None else "still running"
    place = f", in {output.cwd}" if output.cwd else ""
    return f"{text}\n[{status}{place}]"


def note_text(note: Note, limit: int) -> str:
    """A note as the model reads it. The user's words are never cut."""
    match note:
        case a.Message(content=content):
            return content
        case life.Warned(message=message):
            return f"[{message}]"
        case _:
            return observation_text(note, limit)


def action_text(action: ActionBase) -> str:
    """An action that no reply of the model holds, in one line."""
    fields = action.model_dump(mode="json", exclude=_ENVELOPE, exclude_none=True)
    if isinstance(action, a.Message):
        return action.content
    return f"[{getattr(action, 'kind', 'action')} {json.dumps(fields, ensure_ascii=False)}]"
