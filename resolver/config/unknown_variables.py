"""Detection of environment variables that look like settings but are not, with suggestions."""

import re
from collections.abc import Collection, Mapping

from resolver.config.setting_faults import closest_name
from resolver.config.settings import Settings, variable_names

PREFIX = "RESOLVER_"

_BESIDES_SETTINGS = frozenset({"RESOLVER_SANDBOX_TOKEN"})
"""Variables that single commands read, in addition to the settings."""

# Kubernetes and Docker links define variables for each service: one named `resolver` causes these.
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_A_SERVICE = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$"
)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return one sentence for each `RESOLVER_*` variable that is not a setting."""
    known = _BESIDES_SETTINGS | {
        variable
        for name, field in Settings.model_fields.items()
        for variable in variable_names(name, field)
    }
    return [
        f"{variable} is not a setting and is ignored{_suggestion(variable, known)}"
        for variable in sorted(environment)
        if variable.startswith(PREFIX)
        and variable not in known
        and not _OF_A_SERVICE.search(variable)
    ]


def _suggestion(variable: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` with the known name that is most similar, or "" if none is."""
    names = (name.removeprefix(PREFIX) for name in known if name.startswith(PREFIX))
    meant = closest_name(variable.removeprefix(PREFIX), names)
    return f"; did you mean {PREFIX}{meant}?" if meant else ""
