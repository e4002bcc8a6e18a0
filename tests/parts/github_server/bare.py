"""One bare repository: what GitHub's documents show of it, and commits made by tests."""

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# bytes or str: a file; (mode, content): also executables (100755) and symlinks (120000);
# None: the file goes away.
FileContent = bytes | str | tuple[str, bytes] | None

HOOK = """#!/bin/sh
# What GitHub refuses at a push: protected branches; workflow files without that permission.
refused=0
while read -r old new ref; do
  if [ -f protected ]; then
    while read -r protected; do
      [ "$protected" = "$ref" ] || continue
      echo "error: GH006: Protected branch update failed for $ref." >&2
      refused=1
    done <protected
  fi
  case " ${PUSH_BRANCHES:-$ref} " in *" $ref "*) ;; *)
    echo "error: only the branches of pull requests may be edited." >&2
    refused=1
  esac
  case $new in *[!0]*) ;; *) continue ;; esac
  if [ "${PUSH_WORKFLOWS:-write}" != write ]; then
    touched=$(git log --format= --name-only "$new" --not --all -- .github/workflows | head -n 1)
    if [ -n "$touched" ]; then
      echo "refusing to allow a GitHub App to create or update workflow" \\
           "\\`$touched\\` without \\`workflows\\` permission" >&2
      refused=1
    fi
  fi
done
exit $refused
"""


OBJECT_ID = re.compile("[0-9a-f]{40}")

# As on GitHub, any object may be asked for by its name, and clones may be partial. What a test
# commits stays in one pack: nothing is tidied up meanwhile.
SETTINGS = """[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
[gc]
	auto = 0
[receive]
	autogc = false
[fastimport]
	unpackLimit = 1
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
"""


class BareRepository:
    """`path` is the bare repository's folder. Git's own errors come out as they are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kinds: dict[str, str] = {}
        self._answers: dict[tuple[str, ...], bytes] = {}

    @classmethod
    def create(cls, path: Path, branch: str) -> "BareRepository":
        """Make an empty repository, as `git init --bare` does, without a process."""
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks"):
            (path / folder).mkdir(parents=True)
        (path / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        (path / "config").write_text(SETTINGS)
        hook = path / "hooks" / "pre-receive"
        hook.write_text(HOOK)
        hook.chmod(0o755)
        return cls(path)

    def git(self, *args: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        return subprocess.run(
            ["git", *args],
            cwd=self.path,
            input=input,
            env={
                "PATH": os.environ["PATH"],
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                **(env or {}),
            },
            capture_output=True,
            check=True,
        ).stdout

    def _ask(self, ends: tuple[str, ...], *args: str) -> bytes:
        """Git's answer about `ends`. What it says about objects that are named by their ids never
        changes, so it is asked once."""
        if not all(OBJECT_ID.fullmatch(end) for end in ends):
            return self.git(*args)
        if args not in self._answers:
            self._answers[args] = self.git(*args)
        return self._answers[args]

    def fetch(self, source: "BareRepository", ref: str) -> None:
        """Take a ref or a commit from another repository, unless it is here already."""
        if source is not self and self.resolve(ref) is None:
            self.git("fetch", "--quiet", str(source.path), ref)

    def write_object(self, kind: str, raw: bytes) -> str:
        """Write an object and return its id."""
        return self.git("hash-object", "-t", kind, "-w", "--stdin", input=raw).decode().strip()

    def text(self, *args: str) -> str:
        return self.git(*args).decode("utf-8", "replace").strip()

    def resolve(self, revision: str) -> str | None:
        """The commit's id, or None when there is no such thing."""
        if not revision or revision.startswith("-"):
            return None
        try:
            return self.text("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except subprocess.CalledProcessError:
            return None

    def tip(self, branch: str) -> str | None:
        return self.ref(f"refs/heads/{branch}")

    def ref(self, name: str) -> str | None:
        """The commit that a ref names, None when there is no such ref. Read without a process
        of git's where the ref has a file of its own: most requests ask for some."""
        if "\0" in name or ".." in name:
            return None
        try:
            found = (self.path / name).read_text().strip()
        except OSError:
            return self.resolve(name) if (self.path / "packed-refs").exists() else None
        return found if OBJECT_ID.fullmatch(found) else self.resolve(name)

    def refs(self, prefix: str) -> dict[str, tuple[str, str]]:
        """Full names that start with `prefix` -> (object id, object type)."""
        found = {}
        if (self.path / "packed-refs").exists():
            lines = self.text("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
            found = dict(line.split(" ") for line in lines)
        else:
            for file in sorted((self.path / "refs").rglob("*")):
                name = file.relative_to(self.path).as_posix()
                sha = self.ref(name) if file.is_file() and not name.endswith(".lock") else None
                found |= {name: sha} if sha else {}
        return {
            name: (sha, self._kind(sha)) for name, sha in found.items() if name.startswith(prefix)
        }

    def _kind(self, sha: str) -> str:
        """Type of an object."""
        if sha not in self._kinds:
            self._kinds[sha] = self.text("cat-file", "-t", sha)
        return self._kinds[sha]

    def commit(
        self,
        branch: str,
        files: Mapping[str, FileContent],
        message: str,
        author: str,
        at: datetime,
        parent: str | None = None,
    ) -> str:
        """A commit on `branch` (made when it is new, from `parent`); gives its id."""
        who = f"{author} <{author}@users.noreply.github.com> {int(at.timestamp())} +0000"
        text = message.encode()
        stream = [
            f"commit refs/heads/{branch}\nmark :1\nauthor {who}\ncommitter {who}\n".encode(),
            b"data %d\n%b\n" % (len(text), text),
        ]
        start = self.tip(branch) or parent
        if start:
            stream.append(f"from {start}\n".encode())
        for path, content in files.items():
            stream.append(_file_command(path, content))
        stream.append(b"\nget-mark :1\n")
        made = self.git("fast-import", "--quiet", "--force", input=b"".join(stream))
        sha = made.decode().strip()
        self._kinds[sha] = "commit"
        return sha

    def facts(self, sha: str) -> dict[str, Any]:
        """What the API says of a commit in all its places."""
        layout = "%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B"
        raw = self._ask((sha,), "log", "-1", "--no-show-signature", f"--format={layout}", sha)
        tree, parents, *people, message = raw.decode("utf-8", "replace").split("\0")
        author, committer = (
            {"name": name, "email": email, "date": datetime.fromtimestamp(int(at), UTC)}
            for name, email, at in (people[:3], people[3:])
        )
        return {
            "sha": sha,
            "tree": {"sha": tree},
            "parents": [{"sha": parent} for parent in parents.split()],
            "author": author,
            "committer": committer,
            "message": message.rstrip("\n"),
        }

    def between(self, base: str, head: str) -> list[str]:
        """Commits of `head` that `base` has not, oldest first."""
        listed = self._ask((base, head), "rev-list", "--reverse", "--topo-order", f"{base}..{head}")
        return listed.decode().split()

    def merge_base(self, first: str, second: str) -> str | None:
        try:
            return self._ask((first, second), "merge-base", first, second).decode().strip()
        except subprocess.CalledProcessError:
            return None

    def patch(self, base: str, head: str, path: str) -> str | None:
        """The hunks of one file; None when it has none."""
        options = ("--no-color", "--no-ext-diff", "--no-textconv", base, head)
        raw = self._ask((base, head), "diff", *options, "--", f":(literal){path}")
        body = raw.decode("utf-8", "replace")
        hunks = re.search(r"^@@ ", body, re.MULTILINE)
        return body[hunks.start() :].rstrip("\n") if hunks else None

    def entries(self, revision: str, path: str) -> list[dict[str, Any]] | None:
        """The folder's entries, or the one file's; None when there is no such path."""
        path = path.strip("/")
        if path:
            own = self._ls_tree(revision, path)
            if not own or own[0]["type"] != "dir":
                return own or None
        return self._ls_tree(revision, f"{path}/" if path else "")

    def _ls_tree(self, revision: str, path: str) -> list[dict[str, Any]]:
        where = ("--", path) if path else ()
        raw = self._ask((revision,), "ls-tree", "-z", "--long", "--full-tree", revision, *where)
        found = []
        for row in raw.decode("utf-8", "replace").split("\0")[:-1]:
            facts, _, name = row.partition("\t")
            mode, kind, sha, size = facts.split()
            type = "dir" if kind == "tree" else "symlink" if mode == "120000" else "file"
            size_of = int(size) if size != "-" else 0
            named = {"path": name, "name": name.rsplit("/", 1)[-1]}
            found.append({**named, "sha": sha, "size": size_of, "type": type})
        return found

    def blob(self, sha: str) -> bytes:
        return self._ask((sha,), "cat-file", "blob", sha)


def _file_command(path: str, content: FileContent) -> bytes:
    """One file of a commit, in the language of `git fast-import`."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if content is None:
        return f'D "{quoted}"\n'.encode()
    mode, data = content if isinstance(content, tuple) else ("100644", content)
    raw = data.encode() if isinstance(data, str) else data
    return f'M {mode} inline "{quoted}"\n'.encode() + b"data %d\n%b\n" % (len(raw), raw)
