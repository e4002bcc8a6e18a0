"""Settings of the access to GitHub, of who may start work and how, and of what the agent reads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import SecretStr, field_validator

from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS


@dataclass(frozen=True)
class AccessPolicy:
    """The accounts that may start work without write access to the repository.

    users: their logins.
    teams: teams, as ORG/TEAM, of which they are members.
    """

    users: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


def contains_login(logins: tuple[str, ...], login: str) -> bool:
    """Return True if `logins` contains the login, ignoring case."""
    return login.casefold() in {entry.casefold() for entry in logins}


@dataclass(frozen=True)
class GitHubAddresses:
    """Addresses of a GitHub server: to clone from and push to, of the REST and the GraphQL API."""

    server: str = "https://github.com"
    api: str = "https://api.github.com"
    graphql: str = "https://api.github.com/graphql"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "GitHubAddresses":
        """Return the addresses in the variables that the Actions runner sets."""
        given = {
            name: environment.get(f"GITHUB_{name.upper()}_URL", "").strip()
            for name in cls.__dataclass_fields__
        }
        return cls(**{name: address for name, address in given.items() if address})


class GitHubSettings(SettingGroup):
    """Access to GitHub."""

    title: ClassVar[str] = "GitHub"
    when: ClassVar[str] = (
        "Change these to use a token or a GitHub App. The addresses of a GitHub Enterprise Server "
        "are in GITHUB_SERVER_URL, GITHUB_API_URL and GITHUB_GRAPHQL_URL, which the Actions runner "
        "sets."
    )

    github_token: SecretStr | None = setting(
        None,
        "Token that reads the issue, pushes the branch and opens the pull request. It never enters "
        "the sandbox.",
        "GITHUB_TOKEN",
        option=False,
        decides_start=True,
        action_input=True,
        input_default="${{ github.token }}",
    )
    app_id: str | None = setting(
        None,
        "GitHub App to authenticate as, by app id or client id. Needs `app_private_key`. "
        "Preferred over a token: each run gets an installation token for its repository only.",
        "GITHUB_APP_ID",
        option=False,
        decides_start=True,
        action_input=True,
    )
    app_private_key: SecretStr | None = setting(
        None,
        "Private key of the GitHub App: the content of its PEM file, or the path of that file. "
        "It never enters the sandbox.",
        "GITHUB_APP_PRIVATE_KEY",
        option=False,
        decides_start=True,
        action_input=True,
    )
    bot_login: str = setting(
        "",
        "Login of the account that Resolver writes as, and whose assignments and review requests "
        "start work. Requested from GitHub when empty.",
        option=False,
        decides_start=True,
        action_input=True,
    )

    @field_validator("app_private_key")
    @classmethod
    def _private_key_is_pem(cls, value: SecretStr | None) -> SecretStr | None:
        return value and SecretStr(_pem(value.get_secret_value()))

    @property
    def has_app(self) -> bool:
        """True if the id or the key of a GitHub App is set, even if the other is missing."""
        return self.app_id is not None or self.app_private_key is not None


class AccessSettings(SettingGroup):
    """Settings that decide who may start work."""

    title: ClassVar[str] = "Access"
    when: ClassVar[str] = "Change these to decide who can start work."

    allowed_users: tuple[str, ...] = setting(
        (),
        "Logins that may start work without write access, including bots, and teams, as ORG/TEAM, "
        "whose members may. To read the members of a team, the token needs `members: read` on the "
        "organization.",
        option=False,
        decides_start=True,
        action_input=True,
    )

    @field_validator("allowed_users")
    @classmethod
    def _teams_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for team in value:
            if "/" in team and not re.fullmatch(
                r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*", team, re.A
            ):
                raise ValueError(f"{team!r} is not a team of the form ORG/TEAM")
        return value

    @property
    def access_policy(self) -> AccessPolicy:
        """The accounts that may start work without write access."""
        return AccessPolicy(
            users=tuple(name for name in self.allowed_users if "/" not in name),
            teams=tuple(name for name in self.allowed_users if "/" in name),
        )


class TriggerSettings(SettingGroup):
    """Settings that decide which events start work."""

    title: ClassVar[str] = "Triggers"
    when: ClassVar[str] = (
        "Change these to decide what starts work: the mention, the label, reviews, failing checks, "
        "a schedule."
    )

    mention: str = setting(
        "@agent",
        "Mention that starts work in a comment, an issue or a review.",
        option=False,
        decides_start=True,
        action_input=True,
        input_default="@agent",
    )
    label: str = setting(
        "agent",
        "Label that starts work on an issue or a pull request.",
        option=False,
        decides_start=True,
        action_input=True,
        input_default="agent",
    )
    fix_failing_checks: Literal["none", "own", "default-branch", "all"] = setting(
        "none",
        "Whose failing checks start work: those of Resolver's own open pull requests (`own`), "
        "those of the default branch (`default-branch`), or both (`all`). "
        f"See {DOCS}/reference/triggers.md.",
        option=False,
        decides_start=True,
        action_input=True,
    )

    @field_validator("mention")
    @classmethod
    def _mention_is_a_word(cls, value: str) -> str:
        if not value or any(c.isspace() for c in value):
            raise ValueError("the mention is one word, like @agent")
        return value


class ContextSettings(SettingGroup):
    """Settings of what the agent reads in addition to the issue."""

    title: ClassVar[str] = "Context"
    when: ClassVar[str] = "Change these to decide what the agent reads in addition to the issue."

    base_branch: str | None = setting(
        None,
        "Branch that work on an issue starts from and that its pull request targets; the default "
        "branch when unset.",
        repository=True,
        action_input=True,
    )


def _pem(value: str) -> str:
    """Return the content of a PEM file, given as that content or as a path.

    Some ways to pass a value can't contain line breaks; then they are written as `\\n`.

    Raises ValueError if the value is neither.
    """
    if "-----BEGIN" in value:
        return value if "\n" in value.strip() else value.replace("\\n", "\n")
    try:
        text = Path(value).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: `~` can't be expanded
        raise ValueError("neither the text of a PEM file nor the path of one") from None
    if "-----BEGIN" not in text:
        raise ValueError("the file is not a PEM file")
    return text
