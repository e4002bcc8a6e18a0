"""Sets the scenario: accounts, tokens, repositories, issues and what people do to them.

All of it happens at once and unasked, as if done on GitHub's own pages: nothing is recorded
and nobody's permission is checked.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.parts.github_server import uploads
from tests.parts.github_server.bare import BareRepository, FileContent
from tests.parts.github_server.exchange import invalid
from tests.parts.github_server.state import (
    ROLES,
    Account,
    App,
    CheckRun,
    Comment,
    Document,
    Issue,
    Pull,
    Repository,
    Review,
    ReviewComment,
    Token,
    World,
    new_token,
)

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
Lines = tuple[str, int | None, int, str]
"""Path, first line of several, line, and side ("RIGHT" is the new file)."""


def hunk_of(issue: Issue, commit: str, where: Lines) -> str:
    """The diff of the file that these lines are part of. Raises ApiError 422 off the diff."""
    base, _ = issue.fork_point()
    path, first, line, side = where
    assert issue.pull is not None
    patch = issue.repository.git.patch(base, commit, path)
    if patch is None:
        raise invalid("PullRequestReviewComment", "pull_request_review_thread.path")
    for head in HUNK.finditer(patch):
        start, length = (head[3], head[4]) if side == "RIGHT" else (head[1], head[2])
        end = int(start) + int(length or 1)
        is_refused = (path, line) in issue.pull.refused_lines
        if int(start) <= (first or line) <= line < end and not is_refused:
            return patch
    raise invalid("PullRequestReviewComment", "pull_request_review_thread.line")


def closed_issues(pull: Issue) -> list[Issue]:
    """The issues that a pull request closes."""
    named = re.findall(r"(?i)\b(?:fix|fixes|closes|resolves) #(\d+)", pull.body or "")
    return [pull.repository.issues[int(n)] for n in named if int(n) in pull.repository.issues]


class Stage:
    """Repositories are given as they are or as "OWNER/NAME", people as accounts or logins."""

    def __init__(self, world: World) -> None:
        self.world = world

    def repository(self, given: str | Repository) -> Repository:
        return self.world.repository(given) if isinstance(given, str) else given

    def person(self, given: str | Account | None, otherwise: Account) -> Account:
        return self.world.account(given) if isinstance(given, str) else given or otherwise

    # People and rights

    def add_user(self, login: str, type: str = "User") -> Account:
        """type: "User", "Bot" or "Organization"."""
        account = self.world.account(login, type)
        account.type = type
        return account

    def grant(
        self, login: str, repository: str, role: str | None, association: str | None = None
    ) -> None:
        """Gives a role (None takes it away). association: what GitHub then says of the author
        ("MEMBER", ...), which is no permission."""
        repo = self.repository(repository)
        key = self.world.account(login).login.lower()
        repo.roles.pop(key, None)
        if role is not None:
            assert role in ROLES, role
            repo.roles[key] = role
        if association:
            repo.associations[key] = association

    def add_member(self, team: str, login: str, state: str = "active") -> None:
        """team: ORG/TEAM. state: "pending" for who was only invited."""
        with self.world.lock:
            self.add_user(login)
            self.world.teams.setdefault(team.lower(), {})[login.lower()] = state

    def token_for(
        self,
        login: str,
        *repositories: str,
        permissions: Mapping[str, str] | None = None,
        long: bool = False,
        scopes: tuple[str, ...] | None = None,
    ) -> str:
        """A new token. A bot's is an installation token.

        repositories: those it is good for; none named means all.
        permissions: e.g. {"contents": "write", "issues": "read"}; None means all that the
            account may do (for a bot: all, without "workflows").
        long: the newer form of about 520 characters.
        scopes: of a classic token, which all its answers then name.
        """
        account = self.world.account(login)
        value = new_token("ghs_" if account.type == "Bot" else "ghp_", long)
        limited = frozenset(name.lower() for name in repositories) or None
        self.world.tokens[value] = Token(value, account, permissions, limited, scopes=scopes)
        return value

    def add_app(
        self, slug: str, *repositories: str, permissions: Mapping[str, str] | None = None
    ) -> App:
        """A GitHub App, installed on these repositories (none named: on all)."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        writable = ("contents", "issues", "pull_requests", "checks")
        app = App(
            id=next(self.world.ids),
            slug=slug,
            account=self.world.account(f"{slug}[bot]"),
            private_key=private.decode(),
            public_key=public.decode(),
            installation_id=next(self.world.ids),
            repositories=frozenset(name.lower() for name in repositories) or None,
            permissions=permissions or {"metadata": "read", **dict.fromkeys(writable, "write")},
            client_id=f"Iv23li{next(self.world.ids):014d}",
        )
        self.world.apps[app.id] = app
        return app

    def actions_app(self) -> App:
        """GitHub Actions."""
        known = (app for app in self.world.apps.values() if app.slug == "github-actions")
        return next(known, None) or self.add_app("github-actions")

    def note_delivery(
        self,
        hook: App,
        guid: str,
        payload: dict[str, Any],
        status_code: int = 0,
        event: str = "issue_comment",
    ) -> Document:
        """An attempt to deliver it, as it ended."""
        made = {"id": next(self.world.ids), "guid": guid, "delivered_at": self.world.now()}
        made |= {"status_code": status_code, "event": event, "request": {"payload": payload}}
        hook.deliveries.append(made)
        return made

    # Repositories

    def create_repository(
        self,
        full_name: str,
        files: Mapping[str, FileContent] | None = None,
        private: bool = False,
        default_branch: str = "main",
        parent: str | None = None,
    ) -> Repository:
        """A repository with a first commit on its default branch. parent: it is a fork."""
        owner, _, name = full_name.partition("/")
        repository = Repository(
            id=next(self.world.ids),
            owner=self.world.account(owner),
            name=name,
            git=BareRepository.create(self.world.root / f"{full_name}.git", default_branch),
            private=private,
            default_branch=default_branch,
            parent=self.repository(parent) if parent else None,
        )
        with self.world.lock:
            self.world.repositories[full_name.lower()] = repository
        if repository.parent is not None:
            repository.git.fetch(repository.parent.git, "+refs/heads/*:refs/heads/*")
        if files is not None or parent is None:
            self.commit(full_name, default_branch, files or {"README.md": f"# {name}\n"}, "first")
        return repository

    def move_repository(self, full_name: str, new_name: str) -> None:
        """Rename or transfer a repository. Requests under its earlier name are redirected."""
        owner, _, name = new_name.partition("/")
        old, new = full_name.lower(), new_name.lower()
        with self.world.lock:
            repository = self.world.repositories.pop(old)
            self.world.moved[old] = self.world.repositories[new] = repository
            repository.owner, repository.name = self.world.account(owner), name
            path = self.world.root / f"{new_name}.git"
            path.parent.mkdir(exist_ok=True)
            repository.git.path.rename(path)
            repository.git = BareRepository(path)
            for holder in (*self.world.tokens.values(), *self.world.apps.values()):
                if holder.repositories is not None and old in holder.repositories:
                    holder.repositories = holder.repositories - {old} | {new}

    def commit(
        self,
        repository: str,
        branch: str,
        files: Mapping[str, FileContent],
        message: str = "a change",
        author: str | None = None,
    ) -> str:
        """A commit made on the server, as somebody else's push would; gives its id.

        files: path -> content, (mode, content), or None to delete. A new branch starts at the
        default branch.
        """
        repo = self.repository(repository)
        self.world.note_pushes(repo)
        by = author or repo.owner.login
        parent = repo.git.tip(repo.default_branch)
        made = repo.git.commit(branch, files, message, by, self.world.now(), parent)
        self.world.note_pushes(repo)
        return made

    def force_push(self, repository: str, branch: str, commit: str) -> None:
        """The branch is put to another commit, whatever it held."""
        repo = self.repository(repository)
        repo.git.git("update-ref", f"refs/heads/{branch}", commit)
        self.world.note_pushes(repo)

    def protect_branch(self, repository: str, branch: str) -> None:
        """From now on a push to it is refused."""
        with (self.repository(repository).git_dir / "protected").open("a") as listed:
            listed.write(f"refs/heads/{branch}\n")

    # Issues and pull requests

    def create_issue(
        self,
        repository: str | Repository,
        title: str,
        body: str | None = "",
        author: str | Account | None = None,
        labels: tuple[str, ...] = (),
    ) -> Issue:
        """author: the repository's owner unless given."""
        with self.world.lock:
            repo = self.repository(repository)
            by = self.person(author, repo.owner)
            number = len(repo.issues) + 1
            issue = self.world.write(Issue, (repo, number), by, body, title=title)
            repo.issues[number] = issue
            self.put_labels(issue, labels, by)
            return issue

    def create_pull(
        self,
        repository: str | Repository,
        head: str | tuple[Repository, str],
        title: str = "A change",
        body: str | None = "",
        author: str | Account | None = None,
        base: str | None = None,
    ) -> Issue:
        """A pull request from a branch that exists; "owner:branch" names a fork's."""
        with self.world.lock:
            repo = self.repository(repository)
            if isinstance(head, str):
                owner, _, branch = head.rpartition(":")
                head = self.repository(f"{owner}/{repo.name}") if owner else repo, branch
            issue = self.create_issue(repo, title, body, author)
            issue.pull = Pull(next(self.world.ids), *head, base or repo.default_branch)
            issue.tips()
            return issue

    def close(self, issue: Issue) -> None:
        with self.world.lock:
            if issue.pull:
                issue.tips()
            issue.state, issue.closed_at = "closed", self.world.now()

    def merge_pull(self, pull: Issue) -> None:
        """Merge it by moving its base to its head, and close the issues that it closes."""
        assert pull.pull is not None
        _, head = pull.tips()
        pull.repository.git.git("update-ref", f"refs/heads/{pull.pull.base}", head)
        pull.pull.merge_commit, pull.pull.merged_at = head, self.world.now()
        for issue in (*closed_issues(pull), pull):
            self.close(issue)

    def edit_issue(self, issue: Issue, title: str | None = None, body: str | None = None) -> None:
        with self.world.lock:
            if title is not None:
                self.world.note(issue, "renamed", issue.author, issue.title, title)
                issue.title = title
            if body is not None:
                issue.body, issue.last_edited_at = body, self.world.now()
            issue.updated_at = self.world.now()

    def add_comment(self, issue: Issue, body: str, author: str | Account) -> Comment:
        with self.world.lock:
            by = self.person(author, issue.author)
            comment = self.world.write(Comment, (issue.repository, issue.number), by, body)
            issue.comments.append(comment)
            issue.updated_at = comment.created_at
            return comment

    def edit_comment(self, comment: Comment | ReviewComment, body: str) -> None:
        with self.world.lock:
            comment.body, comment.updated_at = body, self.world.now()

    def add_review_comment(
        self,
        pull: Issue,
        path: str,
        line: int,
        body: str,
        author: str | Account,
        side: str = "RIGHT",
        in_reply_to: ReviewComment | None = None,
        start_line: int | None = None,
        commit: str | None = None,
    ) -> ReviewComment:
        """A comment on a line of the pull request's diff. commit: the head unless given."""
        with self.world.lock:
            by = self.person(author, pull.author)
            place = {"path": path, "start_line": start_line, "line": line, "side": side}
            if in_reply_to:
                diff_hunk, commit = in_reply_to.diff_hunk, in_reply_to.commit
            else:
                commit = commit or pull.fork_point()[1]
                diff_hunk = hunk_of(pull, commit, (path, start_line, line, side))
            made = self.world.write(
                ReviewComment,
                (pull.repository, pull.number),
                by,
                body,
                **place,
                commit=commit,
                diff_hunk=diff_hunk,
                review_id=next(self.world.ids),
                in_reply_to=in_reply_to.id if in_reply_to else None,
            )
            pull.review_comments.append(made)
            pull.updated_at = made.created_at
            return made

    def add_review(
        self,
        pull: Issue,
        body: str,
        author: str | Account,
        state: str = "COMMENTED",
        comments: Iterable[tuple[str, int, str]] = (),
        commit: str | None = None,
    ) -> Review:
        """A review with comments on lines (path, line, words): all public at once, as it is when
        somebody presses "Submit review". PENDING is a draft."""
        with self.world.lock:
            by = self.person(author, pull.author)
            at = (pull.repository, pull.number)
            commit = commit or pull.fork_point()[1]
            review = self.world.write(Review, at, by, body, state=state, commit=commit)
            pull.reviews.append(review)
            review.comments += [
                self.add_review_comment(pull, path, line, words, by)
                for path, line, words in comments
            ]
            for made in review.comments:
                made.review_id = review.id
            return review

    def put_labels(self, issue: Issue, names: Iterable[str], by: Account) -> None:
        for name in names:
            if name.lower() not in {label.lower() for label in issue.labels}:
                issue.labels.append(name)
                self.world.note(issue, "labeled", by, name)

    def add_label(self, issue: Issue, label: str, by: str | None = None) -> None:
        """by: the repository's owner unless given."""
        with self.world.lock:
            self.put_labels(issue, [label], self.person(by, issue.repository.owner))

    def remove_label(self, issue: Issue, label: str) -> None:
        with self.world.lock:
            issue.labels.remove(label)
            self.world.note(issue, "unlabeled", issue.repository.owner, label)

    # Results of CI, and files outside the API

    def end_check(
        self,
        repository: str,
        commit: str,
        name: str,
        conclusion: str = "failure",
        app: App | None = None,
        log: str | bytes = "",
        output: dict[str, Any] | None = None,
        steps: tuple[tuple[str, str], ...] = (),
        suite: int | None = None,
    ) -> CheckRun:
        """A check run that is over; one of `actions_app()` is a job with a log. suite: the same
        for all attempts of one check."""
        id, at = next(self.world.ids), self.world.now()
        values = {"status": "completed", "conclusion": conclusion, "output": output or {}}
        values |= {"started_at": at, "completed_at": at, "suite": suite or id}
        run = CheckRun(id, name, commit, app or self.actions_app(), values, list(steps))
        if log:
            body = log.encode() if isinstance(log, str) else log
            run.log = uploads.FILES + self.add_file(f"log-{id}", uploads.File(body))
        self.repository(repository).check_runs.append(run)
        return run

    def end_status(
        self, repository: str, commit: str, context: str, state: str, description: str = ""
    ) -> None:
        """A commit status."""
        at = self.world.now()
        status = {"id": next(self.world.ids), "context": context, "state": state}
        status |= {"description": description, "created_at": at, "updated_at": at}
        self.repository(repository).statuses.setdefault(commit, []).append(status)

    def upload(self, file: bytes | uploads.File) -> str:
        """The path of something that was dropped into a text."""
        given = file if isinstance(file, uploads.File) else uploads.File(file)
        return uploads.PAGES + self.add_file(str(uuid4()), given)

    def add_file(self, name: str, file: uploads.File) -> str:
        self.world.files[name] = file
        return name

    def advance(self, seconds: float) -> None:
        """Moves the server's clock on: what happens after this is later by that much."""
        self.world.clock_offset += timedelta(seconds=seconds)
