"""The state of the test GitHub: data, and the lookups that everything needs."""

import secrets
import string
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import randrange
from typing import Any, TypeVar

from tests.parts.github_server.bare import BareRepository

ROLES = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass
class Account:
    """A user, a bot ("Bot") or an organization ("Organization")."""

    id: int
    login: str
    type: str
    name: str | None = None
    email: str | None = None


@dataclass
class Token:
    """A credential. `permissions` None: whatever the account may; `repositories` None: all."""

    value: str
    account: Account
    permissions: Mapping[str, str] | None = None
    repositories: frozenset[str] | None = None
    revoked: bool = False
    expires_at: datetime | None = None
    scopes: tuple[str, ...] | None = None
    """Of a classic token, as its answers name them."""

    def is_good(self, now: datetime) -> bool:
        return not self.revoked and (self.expires_at is None or now < self.expires_at)

    @property
    def is_installation(self) -> bool:
        return self.account.type == "Bot"


@dataclass
class HookDelivery:
    """An attempt to deliver an event to a webhook. status_code: 0 where nobody answered."""

    id: int
    guid: str
    event: str
    payload: dict[str, Any]
    status_code: int
    delivered_at: datetime


@dataclass
class App:
    """A GitHub App, installed once. The private key is PEM text."""

    id: int
    slug: str
    account: Account
    private_key: str
    public_key: str
    installation_id: int
    repositories: frozenset[str] | None
    permissions: Mapping[str, str]
    client_id: str = ""
    events: tuple[str, ...] = ("issues", "issue_comment")
    installations: dict[str, int] = field(default_factory=dict)
    """Of each owner, in small letters; the first that is asked for is `installation_id`."""
    suspended: bool = False
    deliveries: list[HookDelivery] = field(default_factory=list)
    """Of its webhook, oldest first."""
    hook: dict[str, str] = field(
        default_factory=lambda: {
            "url": "https://agent.example/webhook",
            "content_type": "json",
            "insecure_ssl": "0",
            "secret": "hidden",
        }
    )


@dataclass
class Reaction:
    id: int
    account: Account
    content: str
    created_at: datetime


@dataclass
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class Text:
    """What somebody wrote. minimized: why it is hidden, "" where it is not."""

    id: int
    number: int
    author: Account
    body: Any
    created_at: datetime
    updated_at: datetime
    repository: "Repository"
    reactions: list[Reaction] = field(default_factory=list)
    minimized: str = ""


@dataclass
class Comment(Text):
    """A comment of an issue's or pull request's conversation."""


@dataclass(kw_only=True)
class ReviewComment(Text):
    """A comment on a line of a pull request's diff, or a reply to one."""

    path: str
    start_line: int | None
    line: int
    side: str
    commit: str
    diff_hunk: str
    review_id: int
    in_reply_to: int | None = None
    resolved: bool = False


@dataclass(kw_only=True)
class Review(Text):
    """A review. state: PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED."""

    state: str
    commit: str
    comments: list[ReviewComment] = field(default_factory=list)


@dataclass(frozen=True)
class Push:
    """A branch's tip that changed. kind: as GitHub's activity list calls it."""

    id: int
    branch: str
    before: str
    after: str
    at: datetime
    account: Account | None
    kind: str


@dataclass
class Pull:
    """What makes an issue a pull request. Tips are read from git while their branches live.

    refused_lines: paths and lines that no review comment is taken for, for a test to set.
    """

    id: int
    head_repository: "Repository"
    head: str
    base: str
    draft: bool = False
    maintainer_can_modify: bool = True
    merged_at: datetime | None = None
    merge_commit: str = ""
    last_head: str = ""
    last_base: str = ""
    refused_lines: set[tuple[str, int]] = field(default_factory=set)
    reviewers: list[Account] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    """Slugs of the teams whose review is asked for; `reviewers` are the people."""


@dataclass(frozen=True)
class IssueEvent:
    """What was done to an issue: "labeled", "unlabeled" (`words` is the label) or "renamed"
    (`words` are the old title and the new one)."""

    id: int
    event: str
    account: Account
    at: datetime
    words: tuple[str, ...]


@dataclass(kw_only=True)
class Issue(Text):
    """An issue, or a pull request when `pull` is there. Numbers are shared, as on GitHub."""

    title: str
    state: str = "open"
    closed_at: datetime | None = None
    locked: bool = False
    deleted: bool = False
    labels: list[str] = field(default_factory=list)
    assignees: list[Account] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    last_edited_at: datetime | None = None
    events: list[IssueEvent] = field(default_factory=list)
    named_by: list[tuple["Issue", datetime]] = field(default_factory=list)
    """Issues of other repositories that name it, and when; for a test to set."""
    type: dict[str, Any] | None = None
    milestone: dict[str, Any] | None = None
    """Documents, as GitHub has them."""
    pull: Pull | None = None


@dataclass
class CheckRun:
    id: int
    name: str
    head_sha: str
    app: App
    values: dict[str, Any]
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Of a job: names, and how they ended."""
    log: str | None = None
    """Path of the job's log, where files lie."""


@dataclass(frozen=True)
class Status:
    """A commit status."""

    id: int
    commit: str
    context: str
    state: str
    description: str | None
    at: datetime


@dataclass
class Repository:
    """A repository; its content is in `git`. Flags are there for tests to set."""

    id: int
    owner: Account
    name: str
    git: BareRepository
    private: bool
    created_at: datetime
    default_branch: str = "main"
    archived: bool = False
    actions_may_create_pulls: bool = True
    parent: "Repository | None" = None
    pusher: Account | None = None
    """Who has pushed last; None when that has been noted."""
    roles: dict[str, str] = field(default_factory=dict)
    associations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    check_runs: list[CheckRun] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    workflow_token_writes: bool = False
    rules: list[tuple[str, str]] = field(default_factory=list)
    """Pattern of branches, and the type of a rule that holds there ("creation", ...)."""

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def git_dir(self) -> Path:
        return self.git.path

    def comments(self) -> Iterator[Comment]:
        for issue in self.issues.values():
            yield from issue.comments

    def review_comments(self) -> Iterator[ReviewComment]:
        for issue in self.issues.values():
            yield from issue.review_comments

    def role_of(self, account: Account | None) -> str:
        """The account's role by itself, whatever its token may."""
        if account is not None and account.login == self.owner.login:
            return "admin"
        given = self.roles.get(account.login.lower(), "none") if account else "none"
        return "read" if given == "none" and not self.private else given


TextKind = TypeVar("TextKind", bound=Text)


class World:
    """Everything that exists. Hold `lock` while reading or changing it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = threading.RLock()
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, Repository] = {}
        self.moved: dict[str, Repository] = {}
        """The repositories that were renamed or transferred, by their earlier names."""
        self.apps: dict[int, App] = {}
        self.teams: dict[str, dict[str, str]] = {}
        """Of each ORG/TEAM the logins, with "active" or "pending"; all in small letters."""
        self.ids = count(randrange(1_000_001, 900_000_000, 100_000))
        self.clock_offset = timedelta()
        self.files: dict[str, Any] = {}
        self.files_host = ""
        """Host and port that uploads and logs lie on; the server's own when empty."""

    def files_url(self, server_url: str) -> str:
        """The address of the host that uploads and logs lie on."""
        return f"http://{self.files_host}" if self.files_host else server_url

    def now(self) -> datetime:
        """The server's clock, to the second as GitHub shows it."""
        return (datetime.now(UTC) + self.clock_offset).replace(microsecond=0)

    def account(self, login: str, type: str | None = None) -> Account:
        """The account of that login (any case), made when it is new."""
        known = self.accounts.get(login.lower())
        if known is None:
            kind = type or ("Bot" if login.endswith("[bot]") else "User")
            known = Account(id=next(self.ids), login=login, type=kind)
            self.accounts[login.lower()] = known
        return known

    def write(
        self,
        kind: type[TextKind],
        at: "tuple[Repository, int]",
        author: Account,
        body: str | None,
        **values: Any,
    ) -> TextKind:
        """Return a new text. at: the repository, and the number of the issue or pull request."""
        now = self.now()
        return kind(next(self.ids), at[1], author, body, now, now, at[0], **values)

    def note(self, issue: Issue, event: str, by: Account, *words: str) -> None:
        """Something was done to the issue now."""
        issue.updated_at = self.now()
        issue.events.append(IssueEvent(next(self.ids), event, by, issue.updated_at, words))

    def repository(self, full_name: str) -> Repository:
        """Raises KeyError."""
        return self.repositories[full_name.lower()]


ALPHABET = string.ascii_letters + string.digits


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_token(prefix: str, long: bool = False) -> str:
    """`prefix` is ghp_, gho_ or ghs_; long: the newer form, an id and a signed part."""
    if not long:
        return prefix + _random(36)
    return f"{prefix}{secrets.randbelow(10**7)}_eyJ{_random(80)}.eyJ{_random(160)}.{_random(250)}"
