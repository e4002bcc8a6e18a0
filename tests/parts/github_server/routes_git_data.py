"""REST endpoints of git's own objects: blobs, trees and commits, made by real git in the bare
repository. What an App's or an Action's token commits without naming anybody is signed.
"""

import base64
import binascii
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.parts.github_server import access, documents_git
from tests.parts.github_server.exchange import (
    REPO,
    ROUTES,
    Answer,
    ApiError,
    Call,
    invalid,
    not_found,
)
from tests.parts.github_server.state import Account, Repository

MODES = {"100644": "blob", "100755": "blob", "040000": "tree", "160000": "commit", "120000": "blob"}
SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n\ntest\n-----END PGP SIGNATURE-----"


@ROUTES.add(f"POST {REPO}/git/blobs")
def create_blob(call: Call) -> Answer:
    repository, _ = access.writable(call, "contents", role_needed="write")
    sent = call.body()
    content = sent.get("content")
    if not isinstance(content, str):
        raise invalid("Blob", "content", "missing_field")
    try:
        coded = sent.get("encoding", "utf-8") == "base64"
        raw = base64.b64decode(content, validate=True) if coded else content.encode()
    except binascii.Error:
        raise ApiError(422, "content is not valid Base64") from None
    sha = repository.git.git("hash-object", "-w", "--stdin", input=raw).decode().strip()
    return Answer(201, {"sha": sha})


@ROUTES.add(f"POST {REPO}/git/trees")
def create_tree(call: Call) -> Answer:
    repository, _ = access.writable(call, "contents", role_needed="write")
    sent = call.body()
    entries = sent.get("tree")
    if not isinstance(entries, list) or not entries:
        raise invalid("Tree", "tree")
    with tempfile.TemporaryDirectory() as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        base = sent.get("base_tree")
        if base is not None:
            _require(repository, base, "tree")
            repository.git.git("read-tree", base, env=env)
        for entry in entries:
            _put(repository, entry, env)
        tree = repository.git.git("write-tree", "--missing-ok", env=env).decode().strip()
    return Answer(201, {"sha": tree})


def _put(repository: Repository, entry: Any, env: dict[str, str]) -> None:
    path, mode, sha = (entry.get(name) for name in ("path", "mode", "sha"))
    wrong = not isinstance(path, str) or path.startswith("/") or ".." in path.split("/")
    if wrong or MODES.get(mode) != entry.get("type") or "\0" in path:
        raise ApiError(422, "tree.path or tree.mode is not valid")
    name = path.encode()
    if "sha" in entry and sha is None:
        if not repository.git.git("ls-files", "-z", "--", f":(literal){path}", env=env):
            raise ApiError(422, "GitRPC::BadObjectState")
        line = b"0 " + b"0" * 40 + b"\t" + name + b"\0"
    else:
        if sha is None:
            text = str(entry.get("content", "")).encode()
            sha = repository.git.git("hash-object", "-w", "--stdin", input=text).decode().strip()
        elif mode != "160000":
            _require(repository, sha, MODES[mode])
        line = f"{mode} {sha}\t".encode() + name + b"\0"
    options = ("update-index", "--replace", "-z", "--index-info")
    repository.git.git(*options, input=line, env=env)


@ROUTES.add(f"POST {REPO}/git/commits")
def create_commit(call: Call) -> Answer:
    repository, account = access.writable(call, "contents", role_needed="write")
    sent = call.body()
    message, tree = sent.get("message"), sent.get("tree")
    if not isinstance(message, str):
        raise invalid("Commit", "message", "missing_field")
    _require(repository, tree, "tree")
    parents = sent.get("parents", [])
    for parent in parents:
        _require(repository, parent, "commit")
    now = int(call.world.now().timestamp())
    named = sent.get("author") or sent.get("committer")
    author = sent.get("author") or _person(account)
    signs = call.caller.token is not None and call.caller.token.is_installation and not named
    committer = {"name": "GitHub", "email": "noreply@github.com"} if signs else author
    lines = [
        f"tree {tree}",
        *(f"parent {parent}" for parent in parents),
        f"author {author['name']} <{author['email']}> {now} +0000",
        f"committer {committer['name']} <{committer['email']}> {now} +0000",
        *(["gpgsig " + SIGNATURE.replace("\n", "\n ")] if signs else []),
    ]
    raw = "\n".join(lines) + f"\n\n{message}"
    made = repository.git.git("hash-object", "-t", "commit", "-w", "--stdin", input=raw.encode())
    return Answer(201, _document(repository, made.decode().strip()))


def _person(account: Account) -> dict[str, str]:
    email = f"{account.id}+{account.login}@users.noreply.github.com"
    return {"name": account.name or account.login, "email": email}


@ROUTES.add(f"GET {REPO}/git/commits/{{commit_sha}}")
def get_commit(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    sha = call.at["commit_sha"]
    if not re.fullmatch("[0-9a-f]{40}", sha) or repository.git.resolve(sha) != sha:
        raise not_found()
    return Answer(200, _document(repository, sha))


def _document(repository: Repository, sha: str) -> dict[str, Any]:
    facts = repository.git.facts(sha)
    raw = repository.git.git("cat-file", "commit", sha).decode("utf-8", "replace")
    signed = "\ngpgsig " in raw.partition("\n\n")[0]
    return {
        "sha": sha,
        **documents_git.signatures(facts),
        "message": facts.message,
        "tree": {"sha": facts.tree},
        "parents": [{"sha": parent} for parent in facts.parents],
        "verification": {"verified": signed, "reason": "valid" if signed else "unsigned"},
    }


def _require(repository: Repository, sha: object, kind: str) -> None:
    """Raises ApiError 422 unless there is such an object."""
    try:
        name = sha if isinstance(sha, str) and re.fullmatch("[0-9a-f]{40}", sha) else "-"
        found = repository.git.text("cat-file", "-t", name)
    except subprocess.CalledProcessError:
        found = ""
    if found != kind:
        raise ApiError(422, f"{kind} sha {sha} does not exist or is not a {kind} object")
