"""REST endpoints of the activity of branches and the events of issues."""

from urllib.parse import urlencode

from tests.parts.github_server import access
from tests.parts.github_server import documents_git as documents
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, Call
from tests.parts.github_server.state import Push, Repository, World


def note_pushes(world: World, repository: Repository) -> None:
    """Remembers the branches whose tips have changed since the last look."""
    by, repository.pusher = repository.pusher or repository.owner, None
    known = {push.branch: push.after for push in repository.pushes}
    for name, (tip, _) in repository.git.refs("refs/heads/").items():
        branch = name.removeprefix("refs/heads/")
        before = known.get(branch)
        if before == tip:
            continue
        kind = "branch_creation"
        if before is not None:
            kind = "push" if repository.git.merge_base(before, tip) == before else "force_push"
        push = Push(next(world.ids), branch, before or "0" * 40, tip, world.now(), by, kind)
        repository.pushes.append(push)
        for issue in repository.issues.values():
            pull = issue.pull if issue.state == "open" else None
            if pull and pull.head == branch and pull.head_repository is repository:
                issue.updated_at = push.at


@ROUTES.add(f"GET {REPO}/activity")
def list_activity(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    note_pushes(call.world, repository)
    wanted = call.query.get("ref", "").removeprefix("refs/heads/")
    rows = [push for push in repository.pushes if wanted in ("", push.branch)]
    if call.query.get("direction", "desc") == "desc":
        rows.reverse()
    return _after(call, rows)


def _after(call: Call, rows: list[Push]) -> Answer:
    """The page after the push that `after` names: this list is not counted in pages."""
    ids = [str(push.id) for push in rows]
    start = ids.index(call.query["after"]) + 1 if call.query.get("after") in ids else 0
    shown = rows[start : start + min(int(call.query.get("per_page", "30")), 100)]
    links = {}
    if shown and shown[-1] is not rows[-1]:
        query = urlencode({**call.query, "after": str(shown[-1].id)})
        links["Link"] = f'<{call.site.api_url}{call.exchange.path}?{query}>; rel="next"'
    return Answer(200, [documents.activity(call.site, push) for push in shown], links)
