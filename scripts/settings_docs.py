"""Prints docs/settings.md from the settings model; a test holds the file against it."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from resolver.config.groups import ESSENTIALS, GROUPS
from resolver.config.settings import Settings, extra

HEAD = """# Settings

Made from the modules in `resolver/config/` by `make docs`.

A setting is read from the first of these sources that has it:

1. the command-line option (`--max-budget 3`)
2. the input of the Action (`max-budget: 3`)
3. the environment: `RESOLVER_<NAME>` (`RESOLVER_MAX_BUDGET=3`), or another name in the tables
4. `.github/resolver.yml` of the default branch (`max_budget: 3`), if marked **repository**
5. the default

A variable `RESOLVER_...` that is no setting is ignored with a warning that names the most similar
setting.

"""

TABLE = "| Setting | Default | Meaning |\n|---|---|---|\n"


def default_of(field: FieldInfo) -> str:
    value: Any = field.default
    if field.annotation == SecretStr | None:
        return "*secret*"
    if value in (None, "", (), {}):
        return ""
    if isinstance(value, tuple):
        return "<br>".join(f"`{v}`" for v in value)
    return f"`{value}`"


def choices_of(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a Literal, also of an optional one."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return choices_of(parts[0]) if len(parts) == 1 else ()
    return ()


def meaning(field: FieldInfo) -> str:
    text = (field.description or "").replace("|", "\\|")
    if choices := choices_of(field.annotation):
        text += " One of: " + ", ".join(f"`{v}`" for v in choices) + "."
    return text


def names_of(name: str, field: FieldInfo) -> str:
    setting = extra(field)
    lines = [f"`{name}`"]
    if setting["option"]:
        lines.append(f"`--{name.replace('_', '-')}`")
    lines += [f"`{other}`" for other in setting["names"]]
    if setting["repository"]:
        lines.append("**repository**")
    return "<br>".join(lines)


def rows(names: tuple[str, ...]) -> str:
    fields = ((name, Settings.model_fields[name]) for name in names)
    return TABLE + "".join(
        f"| {names_of(name, field)} | {default_of(field)} | {meaning(field)} |\n"
        for name, field in fields
    )


def settings_page() -> str:
    """Return the whole page: the essentials, then each group."""
    parts = [HEAD, "## The essentials\n\n", rows(ESSENTIALS)]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n\n{group.when}\n\n{rows(group.settings)}")
    return "".join(parts)


if __name__ == "__main__":
    print(settings_page(), end="")
