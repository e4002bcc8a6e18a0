"""Declarations of settings: `setting`, `part` and the base class of settings with several parts.

Every setting is a field of `resolver.config.settings.Settings`. A setting with several parts has a
subclass of `StructuredSetting` as its type and is written as a YAML mapping.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo


class StructuredSetting(BaseModel):
    """A setting with several parts.

    plain: the part that a value which is not a mapping stands for; "" if it must be a mapping.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    plain: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: Any) -> Any:
        if not isinstance(value, (Mapping, cls)):
            raise ValueError(f"it is a mapping with the keys {', '.join(cls.model_fields)}")
        return value


def setting(
    default: Any,
    description: str,
    *names: str,
    repository: bool = False,
    option: bool = True,
    **bounds: Any,
) -> Any:
    """Declare a setting of a pydantic model.

    names: further environment variables that set it.
    repository: the setting can be set in the repository's settings file. Never true for a setting
    that decides where a secret is sent.
    option: the setting has a command-line option. Never true for a secret.
    bounds: constraints for `pydantic.Field`, like `ge` and `le`.
    """
    return Field(
        default=default,
        description=description,
        json_schema_extra={"names": list(names), "repository": repository, "option": option},
        **bounds,
    )


def part(default: Any, description: str, *names: str, **bounds: Any) -> Any:
    """Declare a part of a structured setting.

    names: environment variables that set this part alone.
    bounds: constraints for `pydantic.Field`.
    """
    return Field(
        default=default,
        description=description,
        json_schema_extra={"names": list(names)},
        **bounds,
    )


def extra(field: FieldInfo) -> dict[str, Any]:
    """Return the arguments `names`, `repository` and `option` that `setting` stored in a field."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def setting_parts(field: FieldInfo) -> dict[str, FieldInfo]:
    """Return the parts of a structured setting by name, {} for any other setting."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, StructuredSetting):
        return dict(kind.model_fields)
    return {}
