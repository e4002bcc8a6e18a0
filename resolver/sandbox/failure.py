"""The exception for actions that fail inside the sandbox.

The folder runs under any name and in any place, so the modules here import each other relatively:
`from .failure import ActionFailed`.
"""


class ActionFailed(Exception):
    """Raised if an action can't be done; the message tells the agent why and what to do.

    It becomes the wire's ACTION_FAILED error. Any other exception but OSError is reported as a
    fault of the server.
    """
