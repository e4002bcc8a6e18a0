"""A repository with pull requests of Resolver's that ended in every possible way."""

from dataclasses import dataclass, field
from datetime import timedelta

from resolver.git.git import Credential
from resolver.github.comments.markers import run_marker
from resolver.github.comments.report import Ending
from resolver.github.events.quota_ledger import LedgerPullRequest, QuotaLedger
from resolver.storage.ledger_ref import LedgerRef
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

REPOSITORY = "octo/sums"
BOT = "resolver[bot]"
PERSON = "mona"
DAYS = 86_400


def source(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


@dataclass
class Scenario:
    """Pull requests whose time begins 30 days ago and moves with `advance`."""

    github: GitHubServer
    pulls: dict[str, Issue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        github = self.github
        github.world.clock_offset = timedelta(days=-30)
        github.create_repository(REPOSITORY, {"README.md": "sums\n"})
        github.add_user(PERSON)
        github.add_user(BOT, "Bot")
        github.grant(PERSON, REPOSITORY, "write")
        github.grant(BOT, REPOSITORY, "write")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "GITHUB_TOKEN": self.github.token_for(BOT, REPOSITORY),
            "RESOLVER_BOT_LOGIN": BOT,
            **self.github.addresses,
        }

    @property
    def ledger_ref(self) -> LedgerRef:
        token = self.github.token_for(BOT, REPOSITORY)
        server = self.github.server_url
        return LedgerRef(f"{server}/{REPOSITORY}.git", lambda: Credential(server, token))

    def open(self, name: str, *lines: str, title: str = "", labels: tuple[str, ...] = ()) -> Issue:
        """A pull request of Resolver's that adds the file NAME.py."""
        github = self.github
        issue = github.create_issue(REPOSITORY, f"{name} is missing", author="zoe", labels=labels)
        run = f"20261001-120000-{issue.number:06x}"
        branch = f"agent/issue-{issue.number}-{name}"
        self.commit(branch, name, *(lines or ("one", "two", "three", "four")), run=run)
        marker = run_marker(name, Ending.PULL_REQUEST, issue.number, run)
        body = f"{marker}\n\nFixes #{issue.number}"
        pull = github.create_pull(REPOSITORY, branch, title or f"Add {name}", body, author=BOT)
        self.pulls[name] = pull
        return pull

    def commit(self, branch: str, name: str, *lines: str, run: str = "", by: str = BOT) -> str:
        trailer = f"\n\nResolver-Run: {run}" if run else ""
        author = by.removesuffix("[bot]") if run else by
        message = f"Change {name}{trailer}"
        return self.github.commit(
            REPOSITORY, branch, {f"{name}.py": source(*lines)}, message, author
        )

    def head_branch(self, name: str) -> str:
        pull = self.pulls[name].pull
        assert pull is not None
        return pull.head

    def record(self, *entries: LedgerPullRequest) -> None:
        def change(ledger: QuotaLedger) -> tuple[QuotaLedger, None]:
            for entry in entries:
                ledger = ledger.with_pull_request(entry)
            return ledger, None

        self.ledger_ref.change(change)

    def entry(self, name: str, cost: float, verdict: str = "verified") -> LedgerPullRequest:
        """Return the entry that a run records when it opens the pull request."""
        pull = self.pulls[name]
        assert pull.pull is not None
        head = self.github.repository(REPOSITORY).git.tip(pull.pull.head)
        return LedgerPullRequest(
            number=pull.number, at=pull.created_at, agent="CodeActAgent", model="acme/large-1",
            verdict=verdict, cost=cost, is_priced=True, head=head or "",
        )  # fmt: skip
