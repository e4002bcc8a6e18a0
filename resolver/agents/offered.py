"""What an agent may not do: a tool that it was not offered, an edit where nothing is kept."""

from collections.abc import Collection

from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.templates import render

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
"""The tool that each action comes of. What is not here, every agent may do."""

_EDITS = (a.FileWrite, a.FileEdit)


def or_refused(
    action: ActionBase, tools: Collection[str], shown: Collection[str], *, edits: bool = True
) -> ActionBase:
    """The action, or the words that refuse it.

    tools: the agent's. shown: their names as it writes them. edits: whether it may edit files; who
    may not, may still look at them.
    """
    tool = _TOOLS.get(type(action))
    looks = isinstance(action, a.FileRead) and not edits
    forbidden = isinstance(action, _EDITS) and not edits
    if not forbidden and (tool is None or tool in tools or looks):
        return action
    return refused(action, shown)


def refused(action: ActionBase, shown: Collection[str]) -> a.Invalid:
    """The words that refuse the action. shown: the agent's tools, as it writes them."""
    reason = render("agent/not_offered.md.j2", tools=shown).strip()
    return a.Invalid(
        reason=reason, thought=action.thought, tool_call=action.tool_call, reply=action.reply
    )
