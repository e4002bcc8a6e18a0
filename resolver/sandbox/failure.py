"""The one exception by which an action inside the sandbox says no.

The folder runs under any name and place, so modules here import each other relatively:
`from .failure import ActionFailed`.
"""


class ActionFailed(Exception):
    """The action could not be done, and the message tells the agent why and what to do.

    Becomes the wire's ACTION_FAILED error; anything else that is raised is a fault of the server.
    """
