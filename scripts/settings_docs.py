"""Prints docs/settings.md from the settings model; a test holds the file against it."""

from typing import Any, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from resolver.config.settings import Settings, extra

HEAD = """# Settings

Made from the modules in `resolver/config/` by `make docs`. First wins: command-line options, Action
inputs, environment, `.github/resolver.yml` of the target's default branch (only the settings marked
*repository*), defaults. Every setting can be set in the environment as `RESOLVER_<NAME>` and as an
Action input; the names in the third column work as well. A variable `RESOLVER_...` that is no
setting is ignored with a warning that names the most similar setting.

| Setting | Option | Environment | Repository | Default | Meaning |
|---|---|---|---|---|---|
"""


def default_of(field: FieldInfo) -> str:
    value: Any = field.default
    if field.annotation == SecretStr | None:
        return "*secret*"
    if value in (None, "", (), {}):
        return ""
    if isinstance(value, tuple):
        return "<br>".join(f"`{v}`" for v in value)
    return f"`{value}`"


def meaning(field: FieldInfo) -> str:
    text = (field.description or "").replace("|", "\\|")
    if get_origin(field.annotation) is not None and "Literal" in str(field.annotation):
        text += " One of: " + ", ".join(f"`{v}`" for v in get_args(field.annotation)) + "."
    return text


def row(name: str, field: FieldInfo) -> str:
    knob = extra(field)
    option = f"`--{name.replace('_', '-')}`" if knob["option"] else ""
    names = "<br>".join(f"`{n}`" for n in knob["names"])
    repository = "yes" if knob["repository"] else ""
    cells = [f"`{name}`", option, names, repository, default_of(field), meaning(field)]
    return "| " + " | ".join(cells) + " |"


def settings_page() -> str:
    """The whole page."""
    rows = [row(name, field) for name, field in Settings.model_fields.items()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(settings_page(), end="")
