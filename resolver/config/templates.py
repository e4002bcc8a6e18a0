"""Renderer of the templates in prompts/, which hold all text for models and people.

A missing variable is an error, not an empty string. Templates whose name ends in `.html.j2` are
escaped; all others are plain text or markdown, and the caller escapes untrusted values.
"""

import base64
import hashlib
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from resolver.config.documentation import DOCS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def template_folder() -> Path:
    """Return the path of prompts/: in the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "prompts"
    return installed if installed.is_dir() else package.parent / "prompts"


def environment_options() -> dict[str, Any]:
    """Return the options that all environments of templates in prompts/ have in common."""
    return {
        "loader": FileSystemLoader(template_folder()),
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "keep_trailing_newline": True,
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        **environment_options(),
        # Markdown and prompts are not HTML; pages are escaped.
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),  # noqa: S701
    )
    environment.globals["docs"] = DOCS
    environment.filters["line"] = lambda text: " ".join(text.split())
    return environment


def render(name: str, *contexts: "DataclassInstance", **values: Any) -> str:
    """Return the template `prompts/<name>` rendered with the fields of `contexts` and `values`."""
    context_values = {
        field.name: getattr(context, field.name)
        for context in contexts
        for field in fields(context)
    }
    return _environment().get_template(name).render(**context_values, **values)


def template_values(name: str, **values: Any) -> dict[str, Any]:
    """Return the variables that the template `prompts/<name>` sets at its top."""
    return vars(_environment().get_template(name).make_module(values))


def source_hash(name: str) -> str:
    """Return the expression that allows a template without values, a style or a script, in a
    Content-Security-Policy.

    See https://www.w3.org/TR/CSP3/#grammardef-hash-source
    """
    digest = hashlib.sha256(render(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
