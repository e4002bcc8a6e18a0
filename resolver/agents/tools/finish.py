"""The tool `finish`: how the work ended, and the answers to review threads."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from resolver.agents.tools.base import (
    Arguments,
    TaskCompleted,
    TextOrEmpty,
    Tool,
    list_schema,
    parse_objects,
)
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.events.state import State
from resolver.models.base import JsonObject
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import DeclineReason
from resolver.models.titles import MAX_TITLE_CHARACTERS, is_usable_title

REPORT_ARGUMENTS = ("message", "task_completed", "threads")
"""Arguments of `finish` for agents whose result is their final message."""


def _normalize_reason(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    reason = value.strip().lower().replace(" ", "_").replace("-", "_")
    return None if reason in {"", "none", "null"} else reason


Reason = Annotated[
    DeclineReason | None,
    BeforeValidator(_normalize_reason),
    WithJsonSchema({"type": "string", "enum": list(get_args(DeclineReason))}),
]

MAX_ANSWER_LENGTH = 4_000
"""Maximum length of an answer, in characters. It is one reply in a review thread, not a report."""

MAX_ANSWERS = 60
"""Maximum number of answers."""

_THREAD_ID = re.compile(r"\[?\s*[Tt]?(\d{1,3})\s*\]?")


def _parse_answers(value: Any) -> Any:
    """Parse answers from objects, from an object keyed by id, or from JSON text."""
    value = parse_objects(value)
    if isinstance(value, dict):
        value = [_keyed_answer(id, answer) for id, answer in value.items()]
    if not isinstance(value, list | tuple):
        return value
    return [_normalize_answer(item) for item in value]


def _keyed_answer(id: str, answer: Any) -> Any:
    return {"id": id, **answer} if isinstance(answer, dict) else {"id": id, "answer": answer}


def _normalize_answer(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None}
    match = _THREAD_ID.fullmatch(str(item.get("id", "")).strip())
    return {**item, "id": f"T{int(match[1])}"} if match else item


class _ValidatedAnswer(BaseModel):
    """One validated answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(max_length=20)
    addressed: bool = False
    answer: str = Field(default="", max_length=MAX_ANSWER_LENGTH)


def _build_thread_answers(answers: Sequence[_ValidatedAnswer]) -> tuple[ThreadAnswer, ...]:
    """Return the answers as values of an event. The last of several for one thread wins."""
    by_id = {answer.id: ThreadAnswer(**answer.model_dump()) for answer in answers}
    return tuple(by_id.values())


Answers = Annotated[
    Annotated[tuple[_ValidatedAnswer, ...], Field(max_length=MAX_ANSWERS)],
    BeforeValidator(_parse_answers),
    AfterValidator(_build_thread_answers),
    list_schema(
        {"id": "string", "addressed": "boolean", "answer": "string"},
        required=("id", "addressed", "answer"),
    ),
]


class FinishArguments(Arguments):
    """`finish`."""

    action_type = a.Finish
    renamed: ClassVar = {"reason": "declined", "cause": "root_cause"}

    title: TextOrEmpty = Field(
        default="",
        description="What your change does, as the title of a pull request: one line of at most "
        f"{MAX_TITLE_CHARACTERS} characters, without markdown.",
    )
    message: str = Field(description="A short summary for the person who asked.")
    task_completed: TaskCompleted = Field(
        default=True, description="false when the issue is not, or only partly, resolved."
    )
    reason: Reason = Field(
        default=None,
        description="Only where you leave everything as it was; answered: the message answers a "
        "question, needs_answer: it is your question.",
    )
    cause: TextOrEmpty = Field(default="", description="What was wrong.")
    change: TextOrEmpty = Field(
        default="", description="What changed, and why it is the right change."
    )
    verification: TextOrEmpty = Field(
        default="", description="The commands you ran and what they gave, before and after."
    )
    remaining: TextOrEmpty = Field(
        default="", description="Decisions you took, doubts, what you did not check."
    )
    threads: Answers = Field(
        default=(),
        description="For each conversation that you were asked about: its id, whether you did what "
        "is asked there, and what to tell the person, in one or two sentences.",
    )
    pull_request_body: TextOrEmpty = Field(
        default="",
        description="Only where you are shown a pull request template: that template, filled in.",
    )

    def action(self) -> ActionBase:
        completed = self.task_completed and self.reason in {None, "answered"}
        return super().action().model_copy(update={"task_completed": completed})

    @classmethod
    def from_action(cls, action: ActionBase) -> JsonObject | None:
        # The calls that end a review or a search for places become a Finish as well.
        is_other_tool = isinstance(action, a.Finish) and (action.verdict or action.places)
        return None if is_other_tool else super().from_action(action)

    @classmethod
    def offered_schema(cls, *, is_read_only: bool = False, has_threads: bool = False) -> JsonObject:
        """Return the schema, without `threads` if there are none.

        A title is required. For an agent that changes nothing, the schema has neither a title nor
        sections of a pull request's description.
        """
        schema = super().offered_schema()
        properties = {
            name: value
            for name, value in schema["properties"].items()
            if (has_threads or name != "threads") and (not is_read_only or name in REPORT_ARGUMENTS)
        }
        if is_read_only:
            descriptions = {
                "message": "The whole answer or report.",
                "task_completed": "false when it could not, or only partly, be done.",
            }
            properties |= {
                name: {**properties[name], "description": text}
                for name, text in descriptions.items()
            }
        required = ["message"] if is_read_only else ["title", "message"]
        return {**schema, "properties": properties, "required": required}


def correct_title(action: ActionBase, state: State) -> ActionBase:
    """Return the action, after checking the title that a `Finish` gives to a change.

    A title that can't be used turns the action into an `Invalid` with the rules for titles. That
    happens once in a run: after that, such a title is removed, and the issue's is used instead.
    """
    if not isinstance(action, a.Finish) or action.declined or is_usable_title(action.title):
        return action
    reason = render("agent/unusable_title.md.j2", max_characters=MAX_TITLE_CHARACTERS).strip()
    if any(isinstance(event, a.Invalid) and event.reason == reason for event in state.events):
        return action.model_copy(update={"title": ""})
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )


def correct_thread_answers(action: ActionBase, labels: Sequence[str]) -> ActionBase:
    """Return the action, after checking the review threads that a `Finish` answers.

    labels: labels of those threads. If there are none, answers that the model made up are removed;
    otherwise answers to unknown threads turn the action into an `Invalid` with the reason.
    """
    if not isinstance(action, a.Finish) or not action.threads:
        return action
    if not labels:
        return action.model_copy(update={"threads": ()})
    unknown = [answer.id for answer in action.threads if answer.id not in labels]
    if not unknown:
        return action
    reason = render("agent/unknown_threads.md.j2", unknown=unknown, labels=labels).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )


TOOLS = (
    Tool(name="finish", arguments=FinishArguments),
)  # fmt: skip
