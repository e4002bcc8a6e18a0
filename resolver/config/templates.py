"""Renderer of the templates in prompts/, which hold all text for models and people.

A missing variable is an error, not an empty string. Templates whose name ends in `.html.j2` are
escaped; all others are plain text or markdown, and the caller escapes untrusted values.
"""

import base64
import hashlib
import sys
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, TypedDict

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2 import __version__ as jinja_version
from jinja2.bccache import Bucket

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def template_folder() -> Path:
    """Return the path of prompts/: in the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "prompts"
    return installed if installed.is_dir() else package.parent / "prompts"


class _CompilerOptions(TypedDict):
    """Jinja's options that decide what a template is compiled to."""

    trim_blocks: bool
    lstrip_blocks: bool
    keep_trailing_newline: bool


_OPTIONS = _CompilerOptions(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in a `__pycache__` folder, as Python keeps those of modules.

    Compiling the templates that lead to the first model request takes 50 ms of processor time.
    Nothing is kept where the folder can't be written.
    """

    def __init__(self, directory: Path, *, writes: bool) -> None:
        """writes: False to use what is there and write nothing."""
        super().__init__(str(directory), "%s.template")
        self._writes = writes

    def get_source_checksum(self, source: str) -> str:
        """Return a checksum of everything that the compiled template depends on."""
        return super().get_source_checksum(f"{jinja_version} {_OPTIONS}\n{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the compiled template, if there is one that can be read."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the compiled template, if possible."""
        if not self._writes:
            return
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(template_folder()),
        undefined=StrictUndefined,
        # Markdown and prompts are not HTML; pages are escaped.
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),  # noqa: S701
        bytecode_cache=CompiledTemplates(
            template_folder() / "__pycache__", writes=not sys.dont_write_bytecode
        ),
        **_OPTIONS,
    )


def render(name: str, *contexts: "DataclassInstance", **values: Any) -> str:
    """Return the template `prompts/<name>` rendered with the fields of `contexts` and `values`."""
    context_values = {
        field.name: getattr(context, field.name)
        for context in contexts
        for field in fields(context)
    }
    return _environment().get_template(name).render(**context_values, **values)


def source_hash(name: str) -> str:
    """Return the expression that allows a template without values, a style or a script, in a
    Content-Security-Policy.

    See https://www.w3.org/TR/CSP3/#grammardef-hash-source
    """
    digest = hashlib.sha256(render(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def compile_templates() -> None:
    """Compile all templates, so that an installation that can't be written has them compiled."""
    for name in _environment().list_templates(extensions=["j2"]):
        _environment().get_template(name)
