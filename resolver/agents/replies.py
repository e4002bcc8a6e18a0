"""From one reply of a model to the actions it asks for, in either dialect.

The same reply always gives the same actions: a resumed run reads the rest of a reply again.
"""

from resolver.agents.tags import parse_tags
from resolver.agents.tool_calls import action_of_call
from resolver.events.actions import Finish, Invalid, Message, Think
from resolver.events.base import ActionBase
from resolver.memory.conversation import Dialect
from resolver.model import Completion
from resolver.templates import render

OUTPUT_LIMIT = "length"
"""The finish reason of a reply that the provider cut off."""


def read_reply(completion: Completion, dialect: Dialect) -> tuple[ActionBase, ...]:
    """The actions of the reply in order; never none.

    Tool calls win over tags in the text. The words beside them are the thought of the first
    action. What follows a Finish is dropped. Words alone wait for an answer.
    """
    cut = completion.finish_reason == OUTPUT_LIMIT
    if completion.tool_calls:
        last = len(completion.tool_calls) - 1
        actions = [
            action_of_call(call, cut and index == last)
            for index, call in enumerate(completion.tool_calls)
        ]
        thought = completion.text.strip()
        actions[0] = actions[0].model_copy(update={"thought": thought})
        return _until_finish(actions)
    actions = list(parse_tags(completion.text, cut))
    if dialect == "tools" and any(not isinstance(action, Think) for action in actions):
        return (Invalid(reason=render("agent/tags_in_text.md.j2").strip()),)
    if dialect == "tags" and actions:
        return _until_finish(actions)
    return (_words(completion, cut),)


def _until_finish(actions: list[ActionBase]) -> tuple[ActionBase, ...]:
    for index, action in enumerate(actions):
        if isinstance(action, Finish):
            return tuple(actions[: index + 1])
    return tuple(actions)


def _words(completion: Completion, cut: bool) -> ActionBase:
    if completion.text.strip() and not cut:
        return Message(content=completion.text, wait_for_response=True)
    reason = render(
        "agent/no_action.md.j2", cut=cut, finish_reason=completion.finish_reason
    ).strip()
    return Invalid(reason=reason)
