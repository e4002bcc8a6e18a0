"""Declarations of settings: `SettingGroup`, `setting` and what can be read from them.

Every setting is a field of a group, and so of `resolver.config.settings.Settings`.
"""

from typing import Any, ClassVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo


class SettingGroup(BaseModel):
    """Settings that are changed for the same reason: a section of docs/reference/settings.md.

    title: heading of the section.
    when: says when one would change the settings.
    """

    title: ClassVar[str]
    when: ClassVar[str]


def setting(
    default: Any,
    description: str,
    *names: str,
    repository: bool = False,
    option: bool = True,
    decides_start: bool = False,
    action_input: bool | str = False,
    input_default: str | None = None,
    **bounds: Any,
) -> Any:
    """Declare a setting of a pydantic model.

    names: further environment variables that set it.
    repository: the setting can be set in the repository's settings file. Never true for a setting
    that decides where a secret is sent.
    option: the setting has a command-line option. Never true for a secret.
    decides_start: the setting decides who may start work, what triggers it, or how Resolver can
        answer, so that it is needed to read an event.
    action_input: the setting is an input of the Action; a text is its name, which is the setting's
    name with hyphens otherwise.
    input_default: value that the runner passes if the workflow gives none. It has precedence over
    the environment and the repository's file.
    bounds: constraints for `pydantic.Field`, like `ge` and `le`.
    """
    return Field(
        default=default,
        description=description,
        json_schema_extra={
            "names": list(names),
            "repository": repository,
            "option": option,
            "decides_start": decides_start,
            "action_input": action_input,
            "input_default": input_default,
        },
        **bounds,
    )


def setting_arguments(field: FieldInfo) -> dict[str, Any]:
    """Return the arguments that `setting` stored in a field."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}
