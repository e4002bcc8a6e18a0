"""Resolver's own agents.

All but CodeActAgent change nothing in the repository: their result is an answer, a review or
places. Calls of tools that they don't have, and edits, are refused with a reason.
"""

from resolver.agents.definitions import KNOWN_TOOLS, AgentDefinition
from resolver.agents.tools.calls import BROWSER

CODE_ACT = AgentDefinition(
    name="CodeActAgent",
    description="reads, runs, edits and tests code",
    note="for an independent part of the work",
    tools=KNOWN_TOOLS,
    read_only=False,
    template="agent/system.md.j2",
)

READ_ONLY = AgentDefinition(
    name="ReadOnlyAgent",
    description="answers a question about the code",
    note="its edits are refused",
    tools=("execute_bash", "execute_ipython_cell", "think", "plan", "finish"),
    read_only=True,
    template="agent/readonly.md.j2",
)

REVIEWER = AgentDefinition(
    name="ReviewerAgent",
    description="reviews a change critically and reports what is wrong with it, by file and line",
    note="say which change, as `git diff` shows it",
    tools=(
        "execute_bash",
        "execute_ipython_cell",
        "think",
        "plan",
        "review_comment",
        "submit_review",
    ),
    read_only=True,
    template="agent/reviewer.md.j2",
    is_callable=False,  # people start it with the word "review" on a pull request
)

LOC = AgentDefinition(
    name="LocAgent",
    description="finds the places that have to change; reports paths, lines and why",
    note="by an index of the repository as it was when the work began: worth it where grep would "
    "find too much",
    tools=("execute_bash", "think", "search_code", "explore_code", "report_places"),
    read_only=True,
    template="agent/loc.md.j2",
    needs="index",
)

BROWSING = AgentDefinition(
    name="BrowsingAgent",
    description="uses web pages by their accessibility tree, and reports what it saw",
    tools=("think", "finish", BROWSER),
    read_only=True,
    template="agent/browsing.md.j2",
    needs="browser_tools",
    sees_images=False,
)

VISUAL_BROWSING = AgentDefinition(
    name="VisualBrowsingAgent",
    description="the same with pictures of the pages, for how they look",
    tools=BROWSING.tools,
    read_only=True,
    template="agent/browsing.md.j2",
    needs="browser_tools",
)

BUILT_IN = (CODE_ACT, READ_ONLY, REVIEWER, LOC, BROWSING, VISUAL_BROWSING)
"""All of Resolver's own agents, in the order in which they are shown."""
