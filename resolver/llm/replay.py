"""Models without a provider: one repeats recorded replies, one has replies that a person wrote.

They send no requests, so they cost nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from resolver.errors import ModelError, ReplayExhausted, UsageError
from resolver.llm.base import ChatMessage, ToolSpec
from resolver.models.run import Completion, RequestedToolCall


class ReplayModel:
    """Returns recorded completions in order, whatever is asked.

    `resolver.controller.replay` compares the run with its recording; this class does not.
    """

    def __init__(
        self,
        completions: Sequence[Completion | ModelError],
        *,
        name: str = "replay",
        supports_tools: bool = True,
    ) -> None:
        """Create a model that returns `completions`, raising the errors among them.

        supports_tools: True if the recorded run used native tool calls.
        """
        self._completions = tuple(completions)
        self._returned_count = 0
        self._name = name
        self._supports_tools = supports_tools

    @property
    def name(self) -> str:
        return self._name

    @property
    def supports_tools(self) -> bool:
        return self._supports_tools

    @property
    def supports_vision(self) -> bool:
        """Always False: images make no difference to recorded replies."""
        return False

    def complete(
        self,
        messages: list[ChatMessage],  # noqa: ARG002 - replies don't depend on the request
        tools: list[ToolSpec] | None = None,  # noqa: ARG002
    ) -> Completion:
        """Return the next recorded reply: its tokens as recorded, its cost and latency zero.

        Raises ReplayExhausted if there is none left, and recorded errors.
        """
        if self._returned_count == len(self._completions):
            count = len(self._completions)
            raise ReplayExhausted(
                f"the recording holds {count} model {'reply' if count == 1 else 'replies'} "
                "and the run asked for one more",
                "the run differs from the recording: look for the first difference in the event "
                "log, or record the run again with a live model",
            )
        completion = self._completions[self._returned_count]
        self._returned_count += 1
        if isinstance(completion, ModelError):
            raise completion
        return completion.model_copy(update={"cost": 0.0, "latency": 0.0})


class ScriptedReply(BaseModel):
    """One reply: text, tool calls (`{name: {argument: value}}`), or both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = ""
    calls: tuple[dict[str, dict[str, Any]], ...] = Field(default=())


_Replies = tuple[str | ScriptedReply, ...]
_REPLIES = TypeAdapter(_Replies)
_SERVICES = TypeAdapter(dict[str, _Replies])
_CALL = TypeAdapter(dict[str, Any])


def scripted_models(path: Path, name: str, service: str) -> dict[str, ReplayModel]:
    """Return the models that give the replies in a YAML (or JSON) file, by service.

    The file contains a list of replies, each a text or a mapping with `text` and `calls`, or a
    mapping of services to such lists. A model supports tool calls if its list contains one;
    otherwise it uses the tag dialect.

    name: name of the models.
    service: the service that a plain list is for.

    Raises UsageError that says where the file is invalid.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(data, dict):
            replies = _SERVICES.validate_python(data)
        else:
            replies = {service: _REPLIES.validate_python(data)}
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", "check the path") from error
    except ValidationError as error:
        place = error.errors()[0]["loc"][: 2 if isinstance(data, dict) else 1]
        named = [f"{part + 1 if isinstance(part, int) else part}" for part in reversed(place)]
        where = " of ".join(named) or "in it"
        raise _invalid_script(path, f"reply {where} has another form") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _invalid_script(path, " ".join(str(error).split())) from error
    return {
        service_name: _make_model(service_replies, name)
        for service_name, service_replies in replies.items()
    }


def _make_model(replies: Sequence[str | ScriptedReply], name: str) -> ReplayModel:
    scripted_replies = [ScriptedReply(text=r) if isinstance(r, str) else r for r in replies]
    completions = [_completion(index, reply, name) for index, reply in enumerate(scripted_replies)]
    return ReplayModel(
        completions, name=name, supports_tools=any(r.calls for r in scripted_replies)
    )


def _invalid_script(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path} is not a script of replies: {reason}",
        "write a YAML list of texts, or of `text:` and `calls:` with `- TOOL: {ARGUMENT: VALUE}`; "
        "for several services, such a list below the name of each",
    )


def _completion(index: int, reply: ScriptedReply, name: str) -> Completion:
    pairs = [pair for call in reply.calls for pair in call.items()]
    calls = tuple(
        RequestedToolCall(
            id=f"call_{index}_{number}", name=tool, arguments=_CALL.dump_json(arguments).decode()
        )
        for number, (tool, arguments) in enumerate(pairs)
    )
    return Completion(
        model=name,
        text=reply.text,
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        cost=0.0,
    )
