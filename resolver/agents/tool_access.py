"""Refusal of actions that an agent may not do: unavailable tools, edits by read-only agents."""

from collections.abc import Collection

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events.base import ActionBase

_TOOLS: dict[type[ActionBase], str] = {
    a.CmdRun: "execute_bash",
    a.IPythonRunCell: "execute_ipython_cell",
    a.FileRead: "str_replace_editor",
    a.FileWrite: "str_replace_editor",
    a.FileEdit: "str_replace_editor",
    a.PlanUpdate: "plan",
    a.Delegate: "delegate",
    a.BrowseInteractive: "browser",
    a.Recall: "recall",
    a.Remember: "remember",
    a.CodeSearch: "search_code",
    a.CodeExplore: "explore_code",
    a.ReviewComment: "review_comment",
}
"""The tool of each action.

Actions that are not listed are available to every agent; `_tool_of` handles `Finish`.
"""

_EDITS = (a.FileWrite, a.FileEdit)


def refuse_if_unavailable(
    action: ActionBase, tools: Collection[str], shown: Collection[str], *, edits: bool = True
) -> ActionBase:
    """Return the action, or an `Invalid` that refuses it with a reason.

    tools: the tools of the agent.
    shown: their names as the agent writes them.
    edits: False if the agent may not edit files; it may still view them.
    """
    tool = _tool_of(action)
    looks = isinstance(action, a.FileRead) and not edits
    forbidden = isinstance(action, _EDITS) and not edits
    if not forbidden and (tool is None or tool in tools or looks):
        return action
    return refuse_unavailable(action, shown, is_edit=forbidden and tool in tools)


def _tool_of(action: ActionBase) -> str | None:
    if isinstance(action, a.Finish):
        return "submit_review" if action.verdict else "report_places" if action.places else None
    return _TOOLS.get(type(action))


def refuse_unavailable(
    action: ActionBase, shown: Collection[str], *, is_edit: bool = False
) -> a.Invalid:
    """Return an `Invalid` that tells the agent why the action is refused.

    shown: the tools of the agent, as it writes them.
    is_edit: the agent has the tool but may not edit with it.
    """
    reason = render("agent/not_offered.md.j2", tools=shown, is_edit=is_edit).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
