"""The tool `finish`: how the work ended, and the answers to review threads."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    BeforeValidator,
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
    word,
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


Reason = Annotated[
    DeclineReason | None,
    word(None),
    WithJsonSchema({"type": "string", "enum": list(get_args(DeclineReason))}),
]

MAX_ANSWER_LENGTH = 4_000
"""Maximum length of an answer, in characters. It is one reply in a review thread, not a report."""

MAX_ANSWERS = 60
"""Maximum number of answers."""

_THREAD_ID = re.compile(r"\[?\s*[Tt]?(\d{1,3})\s*\]?")


def _parse_answers(value: Any) -> Any:
    """Parse answers from objects, or from JSON text."""
    value = parse_objects(value)
    return [_parse_answer(item) for item in value] if isinstance(value, list | tuple) else value


def _parse_answer(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    item = {key: value for key, value in item.items() if value is not None}
    if len(str(item.get("answer"))) > MAX_ANSWER_LENGTH:
        raise ValueError(f"an answer has more than {MAX_ANSWER_LENGTH:,} characters")
    match = _THREAD_ID.fullmatch(str(item.get("id", "")).strip())
    return {**item, "id": f"T{int(match[1])}"} if match else item


Answers = Annotated[
    Annotated[tuple[ThreadAnswer, ...], Field(max_length=MAX_ANSWERS)],
    BeforeValidator(_parse_answers),
    list_schema(
        {"id": "string", "addressed": "boolean", "answer": "string"},
        required=("id", "addressed", "answer"),
    ),
]


class FinishArguments(Arguments):
    """`finish`."""

    action_types = (a.Finish,)
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
    refusal = refuse(action, "agent/unusable_title.md.j2", max_characters=MAX_TITLE_CHARACTERS)
    if any(isinstance(e, a.Invalid) and e.reason == refusal.reason for e in state.events):
        return action.model_copy(update={"title": ""})
    return refusal


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
    return refuse(action, "agent/unknown_threads.md.j2", unknown=unknown, labels=labels)


def refuse(action: ActionBase, template: str, **values: Any) -> a.Invalid:
    """Return an `Invalid` in place of the action, with the reason that the template gives."""
    reason = render(template, **values).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )


TOOLS = (
    Tool(name="finish", arguments=FinishArguments),
)  # fmt: skip
