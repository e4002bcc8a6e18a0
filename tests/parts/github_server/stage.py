"""Sets the scenario: accounts, tokens, repositories, issues and what people do to them.

All of it happens at once and unasked, as if done on GitHub's own pages: nothing is recorded
and nobody's permission is checked.
"""

from collections.abc import Mapping
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

from tests.parts.github_server import (
    documents_git,
    routes_issues,
    routes_pulls,
    routes_repository,
    uploads,
)
from tests.parts.github_server.bare import BareRepository, FileContent
from tests.parts.github_server.graphql_fields import closed_issues
from tests.parts.github_server.state import (
    ROLES,
    Account,
    App,
    CheckRun,
    Comment,
    HookDelivery,
    Issue,
    Repository,
    Review,
    ReviewComment,
    Status,
    Token,
    World,
    new_token,
)


class Stage:
    """Strings "OWNER/NAME" and logins are what its methods take."""

    def __init__(self, world: World) -> None:
        self.world = world

    # People and rights

    def add_user(
        self, login: str, type: str = "User", name: str | None = None, email: str | None = None
    ) -> Account:
        """type: "User", "Bot" or "Organization"."""
        account = self.world.account(login, type)
        account.type, account.name, account.email = type, name, email
        return account

    def grant(
        self, login: str, repository: str, role: str | None, association: str | None = None
    ) -> None:
        """Gives a role (None takes it away). association: what GitHub then says of the author
        ("MEMBER", ...), which is no permission."""
        repo = self.repository(repository)
        key = self.world.account(login).login.lower()
        if role is None:
            repo.roles.pop(key, None)
        else:
            assert role in ROLES, role
            repo.roles[key] = role
        if association:
            repo.associations[key] = association

    def add_member(self, team: str, login: str, state: str = "active") -> None:
        """team: ORG/TEAM. state: "pending" for who was only invited."""
        with self.world.lock:
            self.add_user(login)
            members = self.world.teams.setdefault(team.lower(), {})
            members[login.lower()] = state

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

    def revoke(self, token: str) -> None:
        self.world.tokens[token].revoked = True

    def add_app(
        self,
        slug: str,
        *repositories: str,
        permissions: Mapping[str, str] | None = None,
    ) -> App:
        """A GitHub App, installed on these repositories (none named: on all)."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        writable = ("contents", "issues", "pull_requests", "checks")
        granted = {"metadata": "read", **dict.fromkeys(writable, "write")}
        app = App(
            id=next(self.world.ids),
            slug=slug,
            account=self.world.account(f"{slug}[bot]"),
            private_key=private.decode(),
            public_key=public.decode(),
            installation_id=next(self.world.ids),
            repositories=frozenset(name.lower() for name in repositories) or None,
            permissions=permissions or granted,
            client_id=f"Iv23li{next(self.world.ids):014d}",
        )
        self.world.apps[app.id] = app
        return app

    # Repositories

    def note_delivery(
        self,
        hook: App,
        guid: str,
        payload: dict[str, Any],
        status_code: int = 0,
        event: str = "issue_comment",
    ) -> HookDelivery:
        """An attempt to deliver it, as it ended."""
        at = self.world.now()
        made = HookDelivery(next(self.world.ids), guid, event, payload, status_code, at)
        hook.deliveries.append(made)
        return made

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
        path = self.world.root / f"{full_name}.git"
        repository = Repository(
            id=next(self.world.ids),
            owner=self.world.account(owner),
            name=name,
            git=BareRepository.create(path, default_branch),
            private=private,
            created_at=self.world.now(),
            default_branch=default_branch,
            parent=self.repository(parent) if parent else None,
        )
        with self.world.lock:
            self.world.repositories[full_name.lower()] = repository
        if repository.parent is not None:
            source = str(repository.parent.git_dir)
            repository.git.git("fetch", "--quiet", source, "+refs/heads/*:refs/heads/*")
        if files is not None or parent is None:
            self.commit(full_name, default_branch, files or {"README.md": f"# {name}\n"}, "first")
        return repository

    def repository(self, full_name: str) -> Repository:
        return self.world.repository(full_name)

    def move_repository(self, full_name: str, new_name: str) -> None:
        """Rename or transfer a repository. Requests under its earlier name are redirected."""
        owner, _, name = new_name.partition("/")
        with self.world.lock:
            repository = self.world.repositories.pop(full_name.lower())
            self.world.moved[full_name.lower()] = repository
            self.world.repositories[new_name.lower()] = repository
            repository.owner, repository.name = self.world.account(owner), name
            path = self.world.root / f"{new_name}.git"
            path.parent.mkdir(exist_ok=True)
            repository.git.path.rename(path)
            repository.git = BareRepository(path)
            for holder in (*self.world.tokens.values(), *self.world.apps.values()):
                if holder.repositories is not None and full_name.lower() in holder.repositories:
                    kept = holder.repositories - {full_name.lower()}
                    holder.repositories = kept | {new_name.lower()}

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
        routes_repository.note_pushes(self.world, repo)
        made = repo.git.commit(
            branch,
            files,
            message,
            author or repo.owner.login,
            self.world.now(),
            parent=repo.git.tip(repo.default_branch),
        )
        routes_repository.note_pushes(self.world, repo)
        return made

    def force_push(self, repository: str, branch: str, commit: str) -> None:
        """The branch is put to another commit, whatever it held."""
        repo = self.repository(repository)
        repo.git.git("update-ref", f"refs/heads/{branch}", commit)
        routes_repository.note_pushes(self.world, repo)

    def protect_branch(self, repository: str, branch: str) -> None:
        """From now on a push to it is refused."""
        with (self.repository(repository).git_dir / "protected").open("a") as listed:
            listed.write(f"refs/heads/{branch}\n")

    # Issues and pull requests

    def create_issue(
        self,
        repository: str,
        title: str,
        body: str | None = "",
        author: str | None = None,
        labels: tuple[str, ...] = (),
    ) -> Issue:
        """author: the repository's owner unless given."""
        with self.world.lock:
            repo = self.repository(repository)
            by = self.world.account(author) if author else repo.owner
            issue = routes_issues.new_issue(self.world, repo, title, body, by)
            routes_issues.put_labels(self.world, issue, labels, by)
            return issue

    def create_pull(
        self,
        repository: str,
        head: str,
        title: str = "A change",
        body: str | None = "",
        author: str | None = None,
        base: str | None = None,
    ) -> Issue:
        """A pull request from a branch that exists; "owner:branch" names a fork's."""
        with self.world.lock:
            repo = self.repository(repository)
            owner, _, branch = head.rpartition(":")
            source = self.repository(f"{owner}/{repo.name}") if owner else repo
            if source is not repo:
                repo.git.git("fetch", "--quiet", str(source.git_dir), f"refs/heads/{branch}")
            by = self.world.account(author) if author else repo.owner
            words = (title, body)
            target = base or repo.default_branch
            return routes_pulls.new_pull(self.world, repo, (source, branch), target, words, by)

    def close(self, issue: Issue) -> None:
        with self.world.lock:
            if issue.pull:
                documents_git.tips(issue)
            issue.state = "closed"
            issue.closed_at = self.world.now()

    def merge_pull(self, pull: Issue) -> None:
        """Merge it by moving its base to its head, and close the issues that it closes."""
        assert pull.pull is not None
        _, head = documents_git.tips(pull)
        git = pull.repository.git
        git.git("fetch", "--quiet", str(pull.pull.head_repository.git.path), head)
        git.git("update-ref", f"refs/heads/{pull.pull.base}", head)
        pull.pull.merge_commit, pull.pull.merged_at = head, self.world.now()
        for number in closed_issues(pull):
            self.close(pull.repository.issues[number])
        self.close(pull)

    def edit_issue(self, issue: Issue, title: str | None = None, body: str | None = None) -> None:
        with self.world.lock:
            if title is not None:
                words = (issue.title, title)
                self.world.note(issue, "renamed", issue.author, *words)
                issue.title = title
            if body is not None:
                issue.body = body
                issue.last_edited_at = self.world.now()
            issue.updated_at = self.world.now()

    def add_comment(self, issue: Issue, body: str, author: str) -> Comment:
        with self.world.lock:
            account = self.world.account(author)
            return routes_issues.new_comment(self.world, issue, body, account)

    def edit_comment(self, comment: Comment | ReviewComment, body: str) -> None:
        with self.world.lock:
            comment.body, comment.updated_at = body, self.world.now()

    def add_review_comment(
        self,
        pull: Issue,
        path: str,
        line: int,
        body: str,
        author: str,
        side: str = "RIGHT",
        in_reply_to: ReviewComment | None = None,
    ) -> ReviewComment:
        """A comment on a line of the pull request's diff."""
        with self.world.lock:
            account = self.world.account(author)
            where = (path, None, line, side)
            return routes_pulls.new_review_comment(
                self.world, pull, body, account, where, in_reply_to
            )

    def add_review(
        self,
        pull: Issue,
        body: str,
        author: str,
        state: str = "COMMENTED",
        comments: tuple[tuple[str, int, str], ...] = (),
        replies: tuple[tuple[ReviewComment, str], ...] = (),
    ) -> Review:
        """A review with comments on lines (path, line, words) and replies in conversations: all
        public at once, as it is when somebody presses "Submit review". PENDING is a draft."""
        with self.world.lock:
            account = self.world.account(author)
            review = routes_pulls.new_review(self.world, pull, account, body, state)
            for path, line, words in comments:
                made = self.add_review_comment(pull, path, line, words, author)
                review.comments.append(made)
            for parent, words in replies:
                made = self.add_review_comment(
                    pull, parent.path, parent.line, words, author, parent.side, parent
                )
                review.comments.append(made)
            for made in review.comments:
                made.review_id = review.id
            return review

    def add_label(self, issue: Issue, label: str, by: str | None = None) -> None:
        """by: the repository's owner unless given."""
        with self.world.lock:
            account = self.world.account(by) if by else issue.repository.owner
            routes_issues.put_labels(self.world, issue, [label], account)

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
        run = CheckRun(next(self.world.ids), name, commit, app or self.actions_app(), {})
        run.values |= routes_repository.completed(self.world.now(), conclusion)
        run.values |= {"output": output or {}, "suite": suite or run.id}
        run.steps = list(steps)
        if log:
            body = log.encode() if isinstance(log, str) else log
            run.log = uploads.FILES + self.add_file(f"log-{run.id}", uploads.File(body))
        self.repository(repository).check_runs.append(run)
        return run

    def actions_app(self) -> App:
        """GitHub Actions."""
        known = (app for app in self.world.apps.values() if app.slug == "github-actions")
        return next(known, None) or self.add_app("github-actions")

    def end_status(
        self, repository: str, commit: str, context: str, state: str, description: str = ""
    ) -> None:
        """A commit status."""
        at = self.world.now()
        status = Status(next(self.world.ids), commit, context, state, description, at)
        self.repository(repository).statuses.append(status)

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
