"""Settings of the verification: whether a change's checks are executed, which ones, and whether a
model gives its opinion on the change. The module also reads the checks that they declare.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from resolver.config.bounded_yaml import read_yaml
from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS
from resolver.config.setting_messages import closest_name, value_message
from resolver.models.verification import CheckService, ProjectCheck, ReportFormat

MAX_DECLARED = 50
"""Maximum number of declared checks."""

MAX_SERVICES = 5
"""Maximum number of services that run alongside one sandbox."""

_ORIGIN = "`checks` of the settings"
_DRIVE = re.compile(r"[A-Za-z]:")

ServiceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.-]{0,100}$")]
Text = Annotated[str, Field(max_length=2_000, pattern=r"^[^\x00]*$")]


class DeclaredService(BaseModel):
    """A service of a check; `CheckService` describes the fields. A text is the image alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    image: str = Field(min_length=1, max_length=300)
    environment: dict[VariableName, Text] = Field(default={}, max_length=50)
    ports: tuple[Annotated[int, Field(gt=0, lt=65_536)], ...] = Field(default=(), max_length=10)
    command: tuple[Text, ...] = Field(default=(), max_length=50)

    @model_validator(mode="before")
    @classmethod
    def _image_alone(cls, value: Any) -> Any:
        return {"image": value} if isinstance(value, str) else value

    @field_validator("ports", mode="before")
    @classmethod
    def _one_port_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, int) else value


class DeclaredCheck(BaseModel):
    """A check as `.github/resolver.yml` declares it; `ProjectCheck` describes the fields.

    timeout: seconds. services: by the host name, an image or a `DeclaredService`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    command: str = Field(min_length=1, max_length=10_000)
    timeout: float | None = Field(default=None, gt=0, le=86_400)
    paths: tuple[Annotated[str, Field(min_length=1, max_length=1_000)], ...] = Field(
        default=(), max_length=100
    )
    services: dict[ServiceName, DeclaredService] = Field(default={}, max_length=MAX_SERVICES)
    report: str = Field(default="", max_length=1_000)
    report_format: ReportFormat = ""

    @field_validator("name", "command")
    @classmethod
    def _is_text(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError("it is empty, or contains a NUL character")
        return value.strip()

    @field_validator("name")
    @classmethod
    def _is_printable(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("it contains a line break or another control character")
        return value

    @field_validator("paths", mode="before")
    @classmethod
    def _one_path_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("services")
    @classmethod
    def _listen_on_different_ports(
        cls, value: dict[str, DeclaredService]
    ) -> dict[str, DeclaredService]:
        ports = [port for service in value.values() for port in service.ports]
        if len(set(ports)) < len(ports):
            raise ValueError("two services listen on one port, and share one loopback interface")
        return value

    @field_validator("report")
    @classmethod
    def _is_inside_repository(cls, value: str) -> str:
        if value.startswith(("/", "~", "\\")) or _DRIVE.match(value) or ".." in value.split("/"):
            raise ValueError("it is a path in the repository, relative to its root")
        return value

    def as_project_check(self) -> ProjectCheck:
        """Return the check in the form in which it is executed."""
        return ProjectCheck(
            name=self.name,
            command=self.command,
            timeout_seconds=self.timeout,
            paths=self.paths,
            services=tuple(
                CheckService(
                    name=name,
                    image=service.image,
                    environment=service.environment,
                    ports=service.ports,
                    command=service.command,
                )
                for name, service in self.services.items()
            ),
            report=self.report,
            report_format=self.report_format,
            origin=_ORIGIN,
        )


def read_checks_setting(value: Any) -> tuple[ProjectCheck, ...]:
    """Return the declared checks of a settings file, or of a variable that holds YAML.

    Raises ValueError that names all faults, with the entry of each.
    """
    if isinstance(value, str):
        try:
            value = read_yaml(value)
        except yaml.YAMLError as error:
            raise ValueError(f"not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(value, list | tuple):
        raise ValueError("it is a list of checks, each with a `name` and a `command`")
    if len(value) > MAX_DECLARED:
        raise ValueError(f"it has {len(value)} checks, but at most {MAX_DECLARED} are allowed")
    checks: list[ProjectCheck] = []
    faults: list[str] = []
    for number, entry in enumerate(value, start=1):
        if isinstance(entry, ProjectCheck):
            checks.append(entry)
            continue
        try:
            checks.append(DeclaredCheck.model_validate(entry).as_project_check())
        except ValidationError as error:
            faults += [_fault(detail, number, entry) for detail in error.errors()]
    names = [check.name for check in checks]
    repeated = sorted({name for name in names if names.count(name) > 1})
    faults += [f"the name {name!r} is given to several checks" for name in repeated]
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(checks)


def _fault(error: ErrorDetails, number: int, entry: Any) -> str:
    """Return a sentence that says which entry is wrong, where and why."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    label = f" ({name[:100]})" if isinstance(name, str) and name.isprintable() else ""
    location = f"check {number}{label}"
    field = ".".join(str(part) for part in error["loc"])[:100]
    match error["type"]:
        case "extra_forbidden":
            suggestion = closest_name(field, DeclaredCheck.model_fields)
            hint = f" (did you mean {suggestion!r}?)" if suggestion else ""
            return f"{location}: {field!r} is not a property of a check{hint}"
        case "missing":
            return f"{location}: {field!r} is missing"
        case "literal_error":
            suggestion = closest_name(str(error["input"])[:100], _formats())
            hint = (
                f" (did you mean {suggestion!r}?)"
                if suggestion
                else f", only {', '.join(_formats())}"
            )
            return f"{location}: {field!r} can't be {str(error['input'])[:100]!r}{hint}"
        case "model_type" | "model_attributes_type" | "dict_type" if not field:
            return f"{location}: it has no `name` and `command`"
    return f"{location}: {field!r}: {value_message(error)}"


def _formats() -> list[str]:
    return [name for name in ReportFormat.__args__ if name]  # type: ignore[attr-defined]


CheckList = Annotated[tuple[ProjectCheck, ...], BeforeValidator(read_checks_setting)]


class VerificationSettings(SettingGroup):
    """Settings of the verification of a change."""

    title: ClassVar[str] = "Verification"
    when: ClassVar[str] = (
        "Change these to declare the commands that show whether a change works, or to execute none."
    )

    verify: bool = setting(
        True,
        "Execute the project's own checks at the base commit and at the change, in fresh "
        "sandboxes, before the change is published.",
        repository=True,
    )
    checks: CheckList = setting(
        (),
        "Commands that show whether a change works, as a list of `{name: ..., command: ...}`, each "
        "with an optional `timeout` in seconds, `paths`, `services`, `report` and `report_format`. "
        "When empty, "
        f"they are found in the files of the repository. See {DOCS}/how-to/checks.md.",
        repository=True,
        option=False,
    )
