"""The state of the test GitHub: everything that exists, and the lookups that everything needs."""

import secrets
import string
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path
from random import randrange
from typing import Any, TypeVar

from tests.parts.github_server.bare import BareRepository

Document = dict[str, Any]
"""As the REST API shows it; it may hold objects of this module."""

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
ALPHABET = string.ascii_letters + string.digits


@dataclass
class Account:
    """A user, a bot ("Bot") or an organization ("Organization")."""

    id: int
    login: str
    type: str


@dataclass
class Token:
    """A credential. `permissions` None: whatever the account may; `repositories` None: all.

    scopes: of a classic token, as its answers name them.
    """

    value: str
    account: Account
    permissions: Mapping[str, str] | None = None
    repositories: frozenset[str] | None = None
    expires_at: datetime | None = None
    scopes: tuple[str, ...] | None = None

    @property
    def is_installation(self) -> bool:
        return self.account.type == "Bot"


@dataclass
class App:
    """A GitHub App. The private key is PEM text.

    installations: of each owner, in small letters; the first that is asked for is
        `installation_id`.
    deliveries: of its webhook, oldest first.
    """

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
    suspended: bool = False
    deliveries: list[Document] = field(default_factory=list)


@dataclass
class Reaction:
    id: int
    account: Account
    content: str
    created_at: datetime


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

    @property
    def issue(self) -> "Issue":
        """The issue or pull request whose conversation it is part of."""
        return self.repository.issues[self.number]


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


@dataclass
class Pull:
    """What makes an issue a pull request. Tips are read from git while their branches live.

    refused_lines: paths and lines that no review comment is taken for, for a test to set.
    teams: slugs of the teams whose review is asked for; `reviewers` are the people.
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


@dataclass(frozen=True)
class IssueEvent:
    """What was done to an issue: "labeled", "unlabeled" (`words` is the label) or "renamed"
    (`words` are the old title and the new one)."""

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
    labels: list[str] = field(default_factory=list)
    assignees: list[Account] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    last_edited_at: datetime | None = None
    events: list[IssueEvent] = field(default_factory=list)
    pull: Pull | None = None

    @property
    def issue(self) -> "Issue":
        return self

    def tips(self) -> tuple[str, str]:
        """Base and head of a pull request: the branches' tips now, or the last ones known."""
        assert self.pull is not None
        pull = self.pull
        if self.state == "open":
            pull.last_base = self.repository.git.tip(pull.base) or pull.last_base
            pull.last_head = pull.head_repository.git.tip(pull.head) or pull.last_head
            # Through this ref a fork's commits are reached in the repository itself.
            git, name = self.repository.git, f"refs/pull/{self.number}/head"
            if git.ref(name) != pull.last_head:
                git.fetch(pull.head_repository.git, pull.last_head)
                git.git("update-ref", name, pull.last_head)
        return pull.last_base, pull.last_head

    def fork_point(self) -> tuple[str, str]:
        """Return the commit where the head left the base, and the head: the ends of the diff."""
        base, head = self.tips()
        return self.repository.git.merge_base(base, head) or base, head


@dataclass
class CheckRun:
    """steps: of a job, names and how they ended. log: path of the job's log, where files lie."""

    id: int
    name: str
    head_sha: str
    app: App
    values: dict[str, Any]
    steps: list[tuple[str, str]] = field(default_factory=list)
    log: str | None = None


@dataclass
class Repository:
    """A repository; its content is in `git`. Flags are there for tests to set.

    pusher: who has pushed last; None when that has been noted.
    statuses: of each commit, oldest first. pushes: the branches' tips that changed, oldest first.
    rules: pattern of branches, and the type of a rule that holds there ("creation", ...).
    """

    id: int
    owner: Account
    name: str
    git: BareRepository
    private: bool
    default_branch: str = "main"
    archived: bool = False
    actions_may_create_pulls: bool = True
    parent: "Repository | None" = None
    pusher: Account | None = None
    roles: dict[str, str] = field(default_factory=dict)
    associations: dict[str, str] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    check_runs: list[CheckRun] = field(default_factory=list)
    statuses: dict[str, list[Document]] = field(default_factory=dict)
    pushes: list[Document] = field(default_factory=list)
    rules: list[tuple[str, str]] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def git_dir(self) -> Path:
        return self.git.path

    @property
    def pulls(self) -> list[Issue]:
        return [issue for issue in self.issues.values() if issue.pull]

    def texts(self, kind: str) -> "chain[Any]":
        """All "comments", "review_comments" or "reviews"."""
        return chain.from_iterable(getattr(issue, kind) for issue in self.issues.values())

    def role_of(self, account: Account | None) -> str:
        """The account's role by itself, whatever its token may."""
        if account is not None and account.login == self.owner.login:
            return "admin"
        given = self.roles.get(account.login.lower(), "none") if account else "none"
        return "read" if given == "none" and not self.private else given


TextKind = TypeVar("TextKind", bound=Text)


class World:
    """Everything that exists. Hold `lock` while reading or changing it.

    moved: the repositories that were renamed or transferred, by their earlier names.
    teams: of each ORG/TEAM the logins, with "active" or "pending"; all in small letters.
    files_host: host and port that uploads and logs lie on; the server's own when empty.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = threading.RLock()
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, Repository] = {}
        self.moved: dict[str, Repository] = {}
        self.apps: dict[int, App] = {}
        self.teams: dict[str, dict[str, str]] = {}
        self.ids = count(randrange(1_000_001, 900_000_000, 100_000))
        self.clock_offset = timedelta()
        self.files: dict[str, Any] = {}
        self.files_host = ""

    def files_url(self, server_url: str) -> str:
        """The address of the host that uploads and logs lie on."""
        return f"http://{self.files_host}" if self.files_host else server_url

    def now(self) -> datetime:
        """The server's clock, to the second as GitHub shows it."""
        return (datetime.now(UTC) + self.clock_offset).replace(microsecond=0)

    def good_token(self, value: str) -> Token | None:
        """The token of that value; None when it is unknown or expired."""
        token = self.tokens.get(value)
        is_good = token and (token.expires_at is None or self.now() < token.expires_at)
        return token if is_good else None

    def account(self, login: str, type: str | None = None) -> Account:
        """The account of that login (any case), made when it is new."""
        known = self.accounts.get(login.lower())
        if known is None:
            kind = type or ("Bot" if login.endswith("[bot]") else "User")
            known = Account(id=next(self.ids), login=login, type=kind)
            self.accounts[login.lower()] = known
        return known

    def repository(self, full_name: str) -> Repository:
        """Raises KeyError."""
        return self.repositories[full_name.lower()]

    def write(
        self,
        kind: type[TextKind],
        at: tuple[Repository, int],
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
        issue.events.append(IssueEvent(event, by, issue.updated_at, words))

    def note_pushes(self, repository: Repository) -> None:
        """Remember the branches whose tips have changed since the last look."""
        by, repository.pusher = repository.pusher or repository.owner, None
        known = {push["ref"]: push["after"] for push in repository.pushes}
        for name, (tip, _) in repository.git.refs("refs/heads/").items():
            branch, before = name.removeprefix("refs/heads/"), known.get(name)
            if before == tip:
                continue
            kind = "branch_creation"
            if before is not None:
                kind = "push" if repository.git.merge_base(before, tip) == before else "force_push"
            push = {"id": next(self.ids), "before": before or "0" * 40, "after": tip, "ref": name}
            push |= {"timestamp": self.now(), "activity_type": kind, "actor": by}
            repository.pushes.append(push)
            for issue in repository.pulls:
                pull = issue.pull if issue.state == "open" else None
                if pull and pull.head == branch and pull.head_repository is repository:
                    issue.updated_at = self.now()


def new_token(prefix: str, long: bool = False) -> str:
    """`prefix` is ghp_ or ghs_; long: the newer form, an id and a signed part."""

    def random(length: int) -> str:
        return "".join(secrets.choice(ALPHABET) for _ in range(length))

    if not long:
        return prefix + random(36)
    return f"{prefix}{secrets.randbelow(10**7)}_eyJ{random(80)}.eyJ{random(160)}.{random(250)}"
