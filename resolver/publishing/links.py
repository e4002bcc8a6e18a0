"""Links the places in the code that an agent names to the lines of the commit that it read."""

from collections.abc import Callable

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.github.comments.code_links import link_code_places
from resolver.models.run import Trigger, TriggerKind


def code_linker(trigger: Trigger, settings: Settings, workspace: Workspace) -> Callable[[str], str]:
    """Return a function that links the code places in a text. A local run gets no links."""
    if trigger.kind is TriggerKind.LOCAL:
        return lambda text: text
    server = settings.github_server_url.rstrip("/")
    page = f"{server}/{trigger.repository}/blob/{workspace.base}"
    return lambda text: link_code_places(text, page, workspace.lines_of)
