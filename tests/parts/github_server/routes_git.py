"""REST endpoints of what git holds: branches, refs, files, commits, and git's own objects, made by
real git in the bare repository. What an App's or an Action's token commits without naming anybody
is signed.
"""

import base64
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from tests.parts.github_server import documents
from tests.parts.github_server.documents import Document
from tests.parts.github_server.exchange import Answer, ApiError, invalid, not_found
from tests.parts.github_server.routing import Call, route
from tests.parts.github_server.state import Repository

MODES = {"100644": "blob", "100755": "blob", "040000": "tree", "160000": "commit", "120000": "blob"}
SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n\ntest\n-----END PGP SIGNATURE-----"
SHA = re.compile("[0-9a-f]{40}")


@route("GET branches/{branch}", "contents")
def get_branch(call: Call) -> Document:
    name = call.at["branch"]
    tip = call.repository.git.tip(name)
    if tip is None:
        raise ApiError(404, "Branch not found")
    listed = call.repository.git_dir / "protected"
    protected = listed.exists() and f"refs/heads/{name}" in listed.read_text().splitlines()
    return {"name": name, "commit": {"sha": tip}, "protected": protected}


# Refs


@route("GET git/matching-refs/{ref}", "contents")
def matching_refs(call: Call) -> Answer:
    rows = sorted(call.repository.git.refs(f"refs/{call.at['ref']}").items())
    # All of them: this list has no pages.
    return Answer(200, [documents.ref(call.site, call.repository, name, *to) for name, to in rows])


def _set_ref(call: Call, name: str, sha: str) -> Document:
    git = call.repository.git
    if git.resolve(sha) is None:
        raise ApiError(422, "Object does not exist")
    try:
        git.git("update-ref", name, sha)
    except subprocess.CalledProcessError:
        raise ApiError(422, "Reference name is not valid") from None
    return documents.ref(call.site, call.repository, name, sha)


@route("POST git/refs", "contents", role="write")
def create_ref(call: Call) -> Document:
    name = call.sent["ref"]
    if call.repository.git.refs(name).get(name):
        raise ApiError(422, "Reference already exists")
    return _set_ref(call, name, call.sent["sha"])


@route("PATCH git/refs/{ref}", "contents", role="write")
def update_ref(call: Call) -> Document:
    name, sha, git = f"refs/{call.at['ref']}", call.sent["sha"], call.repository.git
    tip = git.ref(name)
    if tip is None:
        raise ApiError(422, "Reference does not exist")
    is_known = git.resolve(sha) is not None
    if is_known and not call.sent.get("force", False) and git.merge_base(tip, sha) != tip:
        raise ApiError(422, "Update is not a fast forward")
    return _set_ref(call, name, sha)


# Files and commits


def revision(repository: Repository, name: str) -> str:
    """The commit of a branch or an id. Raises ApiError 404."""
    sha = repository.git.tip(name) or repository.git.resolve(name)
    if sha is None:
        raise ApiError(404, f"No commit found for the ref {name}")
    return sha


@route("GET contents/{path}", "contents")
def get_content(call: Call) -> Answer:
    repository, path = call.repository, call.at["path"].strip("/")
    name = call.query.get("ref", repository.default_branch)
    entries = repository.git.entries(revision(repository, name), path)
    if entries is None:
        raise not_found()
    if [entry["path"] for entry in entries] == [path]:
        return Answer(200, documents.content_file(call.site, repository, name, entries[0]))
    return Answer(200, [documents.content(call.site, repository, name, row) for row in entries])


@route("GET commits", "contents")
def list_commits(call: Call) -> list[partial[Document]]:
    start = revision(call.repository, call.query.get("sha", call.repository.default_branch))
    rows = call.repository.git.text("rev-list", start).split()
    return [partial(documents.commit, call.site, call.repository, sha) for sha in rows]


@route("GET commits/{ref}", "contents")
def get_commit(call: Call) -> Document:
    git, name = call.repository.git, call.at["ref"]
    sha = git.tip(name) or git.resolve(name)
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {name}")
    return documents.commit(call.site, call.repository, sha)


@route("GET activity", "contents")
def list_activity(call: Call) -> Answer:
    call.world.note_pushes(call.repository)
    wanted = call.query.get("ref", "").removeprefix("refs/heads/")
    rows = [p for p in call.repository.pushes if not wanted or p["ref"] == f"refs/heads/{wanted}"]
    if call.query.get("direction", "desc") == "desc":
        rows.reverse()
    return call.page_after(rows, "after")


# Git's objects


def _require(repository: Repository, sha: object, kind: str) -> None:
    """Raises ApiError 422 unless there is such an object."""
    try:
        name = sha if isinstance(sha, str) and SHA.fullmatch(sha) else "-"
        found = repository.git.text("cat-file", "-t", name)
    except subprocess.CalledProcessError:
        found = ""
    if found != kind:
        raise ApiError(422, f"{kind} sha {sha} does not exist or is not a {kind} object")


@route("POST git/blobs", "contents", role="write")
def create_blob(call: Call) -> Document:
    content, coded = call.sent["content"], call.sent.get("encoding") == "base64"
    raw = base64.b64decode(content, validate=True) if coded else content.encode()
    return {"sha": call.repository.git.write_object("blob", raw)}


@route("POST git/trees", "contents", role="write")
def create_tree(call: Call) -> Document:
    repository, entries = call.repository, call.sent["tree"]
    if not entries:
        raise invalid("Tree", "tree")
    with tempfile.TemporaryDirectory() as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        base = call.sent.get("base_tree")
        if base is not None:
            _require(repository, base, "tree")
            repository.git.git("read-tree", base, env=env)
        for entry in entries:
            _put_entry(repository, entry, env)
        tree = repository.git.git("write-tree", "--missing-ok", env=env).decode().strip()
    return {"sha": tree}


def _put_entry(repository: Repository, entry: Any, env: dict[str, str]) -> None:
    path, mode, sha = (entry.get(name) for name in ("path", "mode", "sha"))
    if MODES.get(mode) != entry.get("type") or "\0" in path:
        raise ApiError(422, "tree.path or tree.mode is not valid")
    git = repository.git
    if "sha" in entry and sha is None:
        if not git.git("ls-files", "-z", "--", f":(literal){path}", env=env):
            raise ApiError(422, "GitRPC::BadObjectState")
        mode, sha = "0", "0" * 40
    elif sha is None:
        sha = git.write_object("blob", str(entry.get("content", "")).encode())
    elif mode != "160000":
        _require(repository, sha, MODES[mode])
    line = f"{mode} {sha}\t{path}\0".encode()
    git.git("update-index", "--replace", "-z", "--index-info", input=line, env=env)


@route("POST git/commits", "contents", role="write")
def create_git_commit(call: Call) -> Document:
    repository, sent, account = call.repository, call.sent, call.account
    message, tree = sent["message"], sent["tree"]
    _require(repository, tree, "tree")
    parents = sent.get("parents", [])
    for parent in parents:
        _require(repository, parent, "commit")
    now = int(call.world.now().timestamp())
    email = f"{account.id}+{account.login}@users.noreply.github.com"
    author = sent.get("author") or {"name": account.login, "email": email}
    signs = call.token.is_installation and not (sent.get("author") or sent.get("committer"))
    committer = {"name": "GitHub", "email": "noreply@github.com"} if signs else author
    lines = [
        f"tree {tree}",
        *(f"parent {parent}" for parent in parents),
        f"author {author['name']} <{author['email']}> {now} +0000",
        f"committer {committer['name']} <{committer['email']}> {now} +0000",
        *(["gpgsig " + SIGNATURE.replace("\n", "\n ")] if signs else []),
    ]
    raw = "\n".join(lines) + f"\n\n{message}"
    return _git_commit(repository, repository.git.write_object("commit", raw.encode()))


@route("GET git/commits/{commit_sha}", "contents")
def get_git_commit(call: Call) -> Document:
    sha = call.at["commit_sha"]
    if not SHA.fullmatch(sha) or call.repository.git.resolve(sha) != sha:
        raise not_found()
    return _git_commit(call.repository, sha)


def _git_commit(repository: Repository, sha: str) -> Document:
    raw = repository.git.text("cat-file", "commit", sha)
    signed = "\ngpgsig " in raw.partition("\n\n")[0]
    verification = {"verified": signed, "reason": "valid" if signed else "unsigned"}
    return {**repository.git.facts(sha), "verification": verification}
