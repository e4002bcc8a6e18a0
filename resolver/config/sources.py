"""The sources of settings: options, the Action's inputs, the environment, the repository's file.

Each is a source of pydantic-settings, which merges them, and knows where it has each value from.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from resolver.config.bounded_yaml import read_yaml
from resolver.config.declaration import setting_arguments
from resolver.config.documentation import DOCS
from resolver.config.image_reference import check_repository_image
from resolver.errors import UsageError

REPOSITORY_FILE = ".github/resolver.yml"
PREFIX = "RESOLVER_"


class DeclaredSettings(BaseSettings):
    """Settings that come from the sources of this module alone. Made from arguments, a subclass has
    these values; only its `load` function reads the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature of pydantic-settings
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the arguments as the only source."""
        return (init_settings,)


class SettingSource(PydanticBaseSettingsSource):
    """One source of settings.

    values: by setting. places: where each value is set, as messages name it.
    """

    def __init__(
        self, kind: type[BaseSettings], values: dict[str, Any], places: Mapping[str, str]
    ) -> None:
        super().__init__(kind)
        self.values = values
        self.places = places

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Return the value as pydantic-settings asks for it."""
        return self.values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return all values."""
        return self.values


class SettingsFile(dict[str, Any]):
    """The parsed settings file of a repository, with the line of each setting, from 1."""

    lines: Mapping[str, int] = {}

    def place(self, name: str) -> str:
        """Return the file, with the line of the setting if it is known."""
        line = self.lines.get(name)
        return f"{REPOSITORY_FILE}:{line}" if line else REPOSITORY_FILE


def option_source(
    kind: type[BaseSettings], options: Mapping[str, Any], names: Collection[str]
) -> SettingSource:
    """Return the options of the command line, of the named settings. None means not given."""
    given = {name: options[name] for name in names if options.get(name) is not None}
    return SettingSource(kind, given, {name: f"--{name.replace('_', '-')}" for name in given})


def variable_source(
    kind: type[BaseSettings],
    environment: Mapping[str, str],
    variables_of: Callable[[str, FieldInfo], Iterable[str]],
    names: Collection[str],
) -> SettingSource:
    """Return what environment variables set, of the named settings. An empty one counts as unset.

    variables_of: returns the variables of a setting, in order of precedence.
    """
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for name in names:
        field = kind.model_fields[name]
        for variable in variables_of(name, field):
            text = environment.get(variable, "").strip()
            if text:
                values[name] = _parse_variable(variable, field.annotation, text)
                places[name] = variable
                break
    return SettingSource(kind, values, places)


def file_source(
    kind: type[BaseSettings], file: SettingsFile, names: Collection[str]
) -> SettingSource:
    """Return what the repository's file sets, of the named settings and those that it may set.

    Raises UsageError for an image that a repository must not name.
    """
    allowed = [name for name in repository_names(kind) if name in file and name in names]
    places = {name: f"{file.place(name)}, {name}" for name in allowed}
    values = {name: file[name] for name in allowed}
    if "image" in values:
        values["image"] = check_repository_image(values["image"], places["image"])
    return SettingSource(kind, values, places)


def repository_names(kind: type[BaseModel]) -> list[str]:
    """Return the settings that a repository's file may set."""
    return [n for n, field in kind.model_fields.items() if setting_arguments(field)["repository"]]


def input_variables(name: str, field: FieldInfo) -> list[str]:
    """Return the variables of the Action's inputs for a setting, in order of precedence.

    The runner upper-cases the name of an input and keeps its hyphens: both spellings are read.
    """
    inputs = [f"INPUT_{given.upper()}" for given in (name, *setting_arguments(field)["names"])]
    return [spelled for i in inputs for spelled in (i, f"INPUT_{i[6:].replace('_', '-')}")]


def own_variables(name: str, field: FieldInfo) -> list[str]:
    """Return the variables of a setting that are no inputs, in order of precedence."""
    return [f"{PREFIX}{name.upper()}", *setting_arguments(field)["names"]]


def repository_settings(content: bytes | None) -> SettingsFile:
    """Return the parsed `.github/resolver.yml`, empty for none. Raises UsageError with the line."""
    data = _read_yaml(content or b"", REPOSITORY_FILE, "correct the file on the default branch")
    if data is None:
        return SettingsFile()
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(
            f"{REPOSITORY_FILE}: settings are `name: value` lines",
            f"see {DOCS}/reference/settings.md",
        )
    file = SettingsFile(data)
    root = yaml.compose(content or b"", Loader=yaml.BaseLoader)
    keys = (key for key, _ in root.value) if isinstance(root, yaml.MappingNode) else ()
    file.lines = {str(key.value): key.start_mark.line + 1 for key in keys}
    return file


def _parse_variable(variable: str, annotation: Any, text: str) -> Any:
    """Return a variable's text in the form that its setting accepts.

    A list of texts is split at commas and line breaks, any other list or mapping is YAML; anything
    else stays text. Raises UsageError if the YAML is invalid.
    """
    if annotation in (tuple[str, ...], tuple[str, ...] | None):
        return tuple(part.strip() for part in text.replace("\n", ",").split(",") if part.strip())
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_model or get_origin(annotation) in (dict, tuple):
        return _read_yaml(text, variable, f"write it as in {DOCS}/reference/settings.md")
    return text


def _read_yaml(text: str | bytes, place: str, advice: str) -> Any:
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = f":{mark.line + 1}" if mark else ""
        what = f"{place}{location}: not YAML: {getattr(error, 'problem', error)}"
        raise UsageError(what, advice) from None
