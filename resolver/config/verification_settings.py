"""Settings of the verification: whether and for how long a change's checks are executed, and
whether a model gives its opinion on the change.
"""

from pydantic_settings import BaseSettings

from resolver.config.declaration import setting


class VerificationSettings(BaseSettings):
    """Settings of the verification of a change."""

    verify: bool = setting(
        True,
        "Execute the project's own checks at the base commit and at the change, in fresh "
        "sandboxes, before the change is published.",
        repository=True,
    )
    verification_seconds: float = setting(
        1200.0,
        "Maximum duration of one verification in seconds. The tests that the change affects are "
        "executed first, then the whole checks.",
        option=False,
        gt=0,
        le=86_400,
    )
    verification_rounds: int = setting(
        2,
        "Number of times that the agent gets the output of checks that fail because of its "
        "change, to correct it within what is left of its limits.",
        repository=True,
        option=False,
        ge=0,
        le=10,
    )
    critique: bool = setting(
        False,
        "Ask a model (service `critic` in `services`) whether the change does what the issue asks "
        "and whether anything in it is unrelated. The answer is shown as an opinion and decides "
        "nothing. It is one more call, paid from the run's budget.",
        repository=True,
        option=False,
    )
