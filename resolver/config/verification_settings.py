"""Settings of the verification: whether a change's checks are executed, which ones, and whether a
model gives its opinion on the change.
"""

import re
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS
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
    report: str | None = Field(default=None, max_length=1_000)
    report_format: ReportFormat | None = None

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
    def _is_inside_repository(cls, value: str | None) -> str | None:
        if value is None:
            return None
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
                CheckService(name=name, **dict(service)) for name, service in self.services.items()
            ),
            report=self.report,
            report_format=self.report_format,
            origin=_ORIGIN,
        )


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
    checks: tuple[DeclaredCheck, ...] = setting(
        (),
        "Commands that show whether a change works, as a list of `{name: ..., command: ...}`, each "
        "with an optional `timeout` in seconds, `paths`, `services`, `report` and `report_format`. "
        "When empty, "
        f"they are found in the files of the repository. See {DOCS}/how-to/checks.md.",
        repository=True,
        option=False,
        max_length=MAX_DECLARED,
    )

    @field_validator("checks")
    @classmethod
    def _have_names_of_their_own(
        cls, value: tuple[DeclaredCheck, ...]
    ) -> tuple[DeclaredCheck, ...]:
        names = [check.name for check in value]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the name {name!r} is given to several checks")
        return value

    @property
    def project_checks(self) -> tuple[ProjectCheck, ...]:
        """The declared checks, in the form in which they are executed."""
        return tuple(check.as_project_check() for check in self.checks)
