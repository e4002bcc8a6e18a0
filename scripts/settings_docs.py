"""Prints docs/reference/settings.md from the settings model. A test compares the file with it."""

import re
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from resolver.config.declaration import setting_arguments
from resolver.config.documentation import DOCS
from resolver.config.server_variables import ServerVariables
from resolver.config.settings import GROUPS, Settings
from resolver.config.sources import own_variables

ESSENTIALS = (
    "model",
    "api_key",
    "base_url",
    "github_token",
    "mention",
    "image",
    "setup",
    "max_budget",
    "max_iterations",
    "egress",
)
"""The settings that most repositories need."""

HEAD = """# Settings

A setting is read from the first of these sources that has it:

1. the command-line option (`--max-budget 3`)
2. the input of the Action (`max-budget: 3`)
3. the environment: `RESOLVER_<NAME>` (`RESOLVER_MAX_BUDGET=3`), or another name in the tables
4. `.github/resolver.yml` of the default branch (`max_budget: 3`), if marked **repository**
5. the default

A list is written with commas in a variable, and a mapping as YAML. Of a mapping, each entry is read
from the first source that has it:

```yaml
# environment of the job or the server
RESOLVER_SERVICE_IMAGES: postgres, redis:7
RESOLVER_MODEL_OPTIONS: "{temperature: 0}"
```

A variable `RESOLVER_...` that is not a setting is ignored with a warning that names the most
similar setting.

"""

SERVER = """
## A server

`resolver serve`, `worker`, `admin` and `costs` read these from the environment alone. See
[docs/how-to/server.md](../how-to/server.md).

"""

TABLE = "| Setting | Default | Meaning |\n|---|---|---|\n"


def format_default(field: FieldInfo) -> str:
    value: Any = field.default
    if field.annotation == SecretStr | None:
        return "*secret*"
    if value in (None, "", (), {}) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, tuple):
        return "<br>".join(f"`{v}`" for v in value)
    return f"`{yaml_text(value)}`"


def yaml_text(value: Any) -> str:
    """Return a plain value as one would write it in YAML: `true`, `5`, `0.5`."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def choices_of(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a Literal, also of an optional one."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return choices_of(parts[0]) if len(parts) == 1 else ()
    return ()


def format_meaning(field: FieldInfo) -> str:
    text = escape_pipes(field)
    if choices := choices_of(field.annotation):
        text += " One of: " + ", ".join(f"`{v}`" for v in choices) + "."
    return text


def format_names(name: str, field: FieldInfo) -> str:
    setting = setting_arguments(field)
    lines = [f"`{name}`"]
    if setting["option"]:
        lines.append(f"`--{name.replace('_', '-')}`")
    lines += [f"`{variable}`" for variable in setting["names"]]
    if setting["repository"]:
        lines.append("**repository**")
    return "<br>".join(lines)


def escape_pipes(field: FieldInfo) -> str:
    return link_pages((field.description or "").replace("|", "\\|"))


def link_pages(text: str) -> str:
    """Return a text of a page in docs/reference with relative links to other pages."""
    return re.sub(rf"{DOCS}/([\w-]+/[\w-]+\.md)", r"[docs/\1](../\1)", text)


def format_rows(names: Iterable[str]) -> str:
    fields = ((name, Settings.model_fields[name]) for name in names)
    return TABLE + "".join(
        f"| {format_names(name, field)} | {format_default(field)} | {format_meaning(field)} |\n"
        for name, field in fields
    )


def server_rows() -> str:
    """Return the table of a server's variables."""
    return TABLE.replace("Setting", "Variable") + "".join(
        f"| {'<br>'.join(f'`{v}`' for v in own_variables(name, field))} "
        f"| {format_default(field)} | {format_meaning(field)} |\n"
        for name, field in ServerVariables.model_fields.items()
    )


def settings_page() -> str:
    """Return the whole page: the essentials, then each group."""
    parts = [HEAD, "## The essentials\n\n", format_rows(ESSENTIALS)]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n\n{group.when}\n\n{format_rows(group.model_fields)}")
    parts.append(SERVER + server_rows())
    return "".join([*parts, origin_note("resolver/config/")])


def origin_note(source: str) -> str:
    """Return the end of a page for whoever edits it, which readers do not see."""
    return f"\n<!-- Made from {source} by `make docs`. -->\n"


if __name__ == "__main__":
    print(settings_page(), end="")
