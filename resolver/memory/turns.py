"""Groups the log into turns: a model's reply, the actions parsed from it, and their results.

A turn is the unit that is shown or forgotten. Its calls and results are never separated, because
providers reject a tool call without a result. Observations, notes and actions are rendered as the
text that a model reads, within a size limit.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, field

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.models.issue_context import Picture
from resolver.models.truncate import keep_last_lines, marker_for, truncate_middle

Note = a.Message | life.Warned | ObservationBase
"""A message between two turns: the user's message, a warning, recalled knowledge, or an observation
without a matching action."""


@dataclass
class Turn:
    """Represents one turn. `reply` is None for the head of the log and for an action that belongs
    to no reply.

    results: observations by the id of the action that they answer.
    notes: messages after this turn and before the next one.
    ids: ids of the events that are shown or forgotten together: all but those of the notes.
    """

    reply: life.ModelReplied | None = None
    actions: list[ActionBase] = field(default_factory=list)
    results: dict[int, ObservationBase] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    ids: set[int] = field(default_factory=set)


class History:
    """Holds the turns of one log. They are updated from new events only, and only the last one
    changes.

    turns: the first one is the head, which has notes but no reply.
    task_pictures: images of the task, which belong to the user's first message.
    forgotten, masked: event ids from all condensations so far.
    summary, notes: those of the last condensation that forgot something. They cover everything that
        was forgotten.
    condensation_wanted: there is a CondensationRequest that no Condensation has answered yet.
    revision: changes when what was shown before changes: with a condensation, and another log.
    accepted_tokens: the smallest size that the model's endpoint said it accepts; None if it never
        said one.

    What the run itself does in the sandbox, such as the setup, is not part of the conversation. The
    knowledge that it recalls for the agent is.
    """

    def __init__(self) -> None:
        self._log = LogFollower()
        self.revision = 0
        self._clear()

    def update(self, state: State) -> None:
        """Process the events that are new in the state, or all if it is of another log."""
        new_events, is_start = self._log.read(state)
        if is_start:
            self._clear()
        for event in new_events:
            self._process(event)

    def _clear(self) -> None:
        self.revision += 1
        self.turns: list[Turn] = [Turn()]
        self.system: life.SystemPrompt | None = None
        self.task_pictures: tuple[Picture, ...] = ()
        self._task_message_id: int | None = None
        self.forgotten: set[int] = set()
        self.masked: set[int] = set()
        self._environment_actions: set[int] = set()
        self.summary = ""
        self.notes = ""
        self.condensation_wanted = False
        self.accepted_tokens: int | None = None

    def pictures_of(self, note: Note) -> tuple[Picture, ...]:
        """Return the images of the task if the note is the task, otherwise nothing."""
        return self.task_pictures if note.id == self._task_message_id else ()

    def _process(self, event: Event) -> None:
        current = self.turns[-1]
        match event:
            case life.RunStarted(task=task):
                self.revision += 1
                self.task_pictures = tuple(picture for picture in task.pictures if picture.data)
            case life.SystemPrompt():
                self.system = self.system or event
            case life.ModelReplied():
                self.turns.append(Turn(reply=event, ids={event.id}))
            case a.Message(source=Source.USER) | life.Warned(to_agent=True):
                if isinstance(event, a.Message) and self._task_message_id is None:
                    self._task_message_id = event.id
                current.notes.append(event)
            case a.CondensationRequest(max_tokens=max_tokens):
                self.condensation_wanted = True
                if max_tokens is not None:
                    self.accepted_tokens = min(max_tokens, self.accepted_tokens or max_tokens)
            case life.Condensation(forgotten=forgotten):
                self.revision += 1
                self.forgotten.update(forgotten)
                self.masked.update(event.masked)
                if forgotten:
                    self.summary, self.notes = event.summary, event.notes
                self.condensation_wanted = False
            case o.AgentStateChanged():
                pass
            case ActionBase(source=Source.ENVIRONMENT):
                self._environment_actions.add(event.id)
            case ActionBase(source=Source.AGENT) if not isinstance(event, a.CondensationRequest):
                self._process_action(event)
            case ObservationBase():
                self._process_observation(event)
            case _:
                pass

    def _process_action(self, action: ActionBase) -> None:
        reply = self.turns[-1].reply
        if reply is None or reply.id != action.reply:
            self.turns.append(Turn())
        self.turns[-1].actions.append(action)
        self.turns[-1].ids.add(action.id)

    def _process_observation(self, observation: ObservationBase) -> None:
        if observation.cause in self._environment_actions and not isinstance(
            observation, o.RecallResult
        ):
            return
        turn = self.turns[-1]
        if observation.cause is not None and any(
            action.id == observation.cause for action in turn.actions
        ):
            turn.results[observation.cause] = observation
            turn.ids.add(observation.id)
        elif not isinstance(observation, o.Null):
            turn.notes.append(observation)


INTERRUPTED_RESULT = (
    "[no result: the run was interrupted while this was under way. It may have had effects: "
    "look at the current state before you repeat it]"
)
NOT_RUN_RESULT = "[not run: the work was interrupted or finished before this call]"
_CELL_ERROR = "[the cell raised an error]"
MASKED_LENGTH = 600
"""Maximum characters of its last lines that a masked output of a failed command still shows."""

_EVENT_FIELDS = {"id", "timestamp", "source", "cause", "tool_call", "thought", "reply", "kind"}


def result_text(turn: Turn, index: int, limit: int, masked: Container[int] = ()) -> str:
    """Return the result of the turn's call at `index`. Every call gets an answer, even one that was
    interrupted or never run: providers require a result for each tool call.

    masked: ids of observations of which only the outcome is shown.
    """
    if index >= len(turn.actions):
        return NOT_RUN_RESULT
    action = turn.actions[index]
    result = turn.results.get(action.id)
    if result is not None and not isinstance(result, o.Null):
        is_masked = result.id in masked
        return masked_text(result) if is_masked else observation_text(result, limit)
    match action:
        case a.Invalid(reason=reason):
            return truncate_middle(f"ERROR: {reason}", limit)
        case a.Think():
            return "Noted."
        case a.Finish():
            return "[the work was declared finished here, and continues]"
        case a.Message():
            return ""
        case _:
            return INTERRUPTED_RESULT if result is None else "[done]"


def observation_text(observation: ObservationBase, limit: int) -> str:
    """Return the observation as the model reads it: its text, truncated to `limit` characters, then
    facts such as the exit code in square brackets."""
    match observation:
        case o.CmdOutput():
            return _command_text(observation, limit)
        case o.IPythonOutput(error=True) | o.McpResult(error=True):
            is_cell = isinstance(observation, o.IPythonOutput)
            body = _body(observation.content, limit, observation.rest_hint)
            return f"{body}\n{_CELL_ERROR if is_cell else '[the tool says that it failed]'}"
        case o.FileEditResult(diff=diff):
            return _body(observation.content or diff, limit, observation.rest_hint)
        case o.ErrorObservation(content=content):
            return truncate_middle(f"ERROR: {content}", limit)
        case o.RecallResult():
            return _recalled_text(observation, limit)
        case _:
            return _body(observation.content, limit, observation.rest_hint)


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
            hint = f"all of it is in {where}" if where else "run the command again to see it"
            outcome = keep_last_lines(observation.content.strip(), MASKED_LENGTH if code else 150)
            note = f"[output of {size} left out to save space; {hint}]"
            return f"{outcome}\n{note}\n{_status(observation)}".lstrip("\n")
        case o.IPythonOutput(error=True):
            outcome = keep_last_lines(observation.content.strip(), MASKED_LENGTH)
            return f"{outcome}\n[output of {size} left out to save space]\n{_CELL_ERROR}"
        case o.FileReadResult(path=path):
            return f"[{size} of {path} left out to save space; view it again if you need it]"
        case _:
            return f"[{size} left out to save space]"


def _body(content: str, limit: int, hint: str | None) -> str:
    text = content.rstrip("\n")
    return truncate_middle(text, limit, hint or "") if text.strip() else "[no output]"


def _command_text(output: o.CmdOutput, limit: int) -> str:
    path = output.output_file
    hint = (
        f"The whole output is in {path}: use sed, grep or tail on it."
        if path
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
    fields = action.model_dump(mode="json", exclude=_EVENT_FIELDS, exclude_none=True)
    if isinstance(action, a.Message):
        return action.content
    return f"[{getattr(action, 'kind', 'action')} {json.dumps(fields, ensure_ascii=False)}]"
