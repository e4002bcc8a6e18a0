"""The GraphQL API: graphql-core executes queries on GitHub's published schema.

The objects are mappings with values by the names of fields; a function is called with the field's
arguments. For the most part they hold what the REST documents hold. A field that is not served is
an error.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from graphql import (
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    build_schema,
    execute_sync,
    parse,
    validate,
)

from tests.parts.github_server import access, documents
from tests.parts.github_server.access import Caller
from tests.parts.github_server.documents import node_id
from tests.parts.github_server.exchange import Answer, ApiError, Exchange, Site
from tests.parts.github_server.stage import closed_issues
from tests.parts.github_server.state import (
    Account,
    Issue,
    IssueEvent,
    Repository,
    Review,
    ReviewComment,
    Text,
    World,
)
from tests.parts.published import GRAPHQL_SCHEMA, published

Fields = Mapping[str, Any]
_EVENTS = {
    "labeled": "LabeledEvent",
    "unlabeled": "UnlabeledEvent",
    "renamed": "RenamedTitleEvent",
    "locked": "LockedEvent",
}
Row = TypeVar("Row")
MOST_TEXT = 512_000
"""Longer text is cut."""


class TypedError(GraphQLError):
    """An error with GitHub's type."""

    def __init__(self, message: str, type: str = "NOT_FOUND") -> None:
        super().__init__(message, extensions={"type": type})


@cache
def _schema(path: Path) -> GraphQLSchema:
    """The schema in that file (2 s, 50 MB). Its own small mistakes are none of ours."""
    return build_schema(
        path.read_text(), assume_valid=True, assume_valid_sdl=True, no_location=True
    )


@cache
def _errors_in(schema: GraphQLSchema, query: str) -> tuple[GraphQLError, ...]:
    return tuple(validate(schema, parse(query)))


def _resolve(source: Any, info: GraphQLResolveInfo, **arguments: Any) -> Any:
    if info.field_name not in source:
        raise GraphQLError(f"the field {info.field_name} is not served")
    value = source[info.field_name]
    return value(arguments) if callable(value) else value


def graphql(world: World, caller: Caller, exchange: Exchange) -> Answer:
    """POST /graphql. Errors in a query are answered with status 200, as on GitHub."""
    if caller.token is None:
        raise ApiError(401, "This endpoint requires you to be authenticated.")
    schema, query = _schema(published(GRAPHQL_SCHEMA)), str(exchange.json.get("query", ""))
    errors: Iterable[GraphQLError] | None = _errors_in(schema, query)
    data = None
    if not errors:
        root = _Root(world, caller, exchange.site).fields()
        variables = exchange.json.get("variables") or {}
        done = execute_sync(
            schema, parse(query), root, variable_values=variables, field_resolver=_resolve
        )
        data, errors = documents.render(exchange.site, done.data), done.errors
    shown = [
        {"message": error.message, "path": error.path, **(error.extensions or {})}
        for error in errors or ()
    ]
    return Answer(200, {"data": data, **({"errors": shown} if shown else {})})


def connection(rows: list[Row], show: Callable[[Row], Fields], arguments: Fields) -> Fields:
    """The rows of the page that was asked for."""
    start, end = int(arguments.get("after") or 0), len(rows)
    if arguments.get("last") is not None:
        end = int(arguments.get("before") or end)
        start = max(0, end - min(arguments["last"], 100))
    else:
        end = min(start + min(arguments.get("first") or 100, 100), end)
    page = {
        "hasNextPage": end < len(rows),
        "endCursor": str(end),
        "hasPreviousPage": start > 0,
        "startCursor": str(start),
    }
    nodes = [show(row) for row in rows[start:end]]
    return {"totalCount": len(rows), "nodes": nodes, "pageInfo": page}


def _pages(rows: list[Row], show: Callable[[Row], Fields]) -> Callable[[Fields], Fields]:
    return lambda arguments: connection(rows, show, arguments)


def _account(account: Account) -> Fields:
    return {
        "__typename": account.type,
        "login": account.login,
        "databaseId": account.id,
        "id": node_id("User", account.id),
    }


def _author(account: Account) -> Fields:
    """Who wrote something: of a bot without the mark that the REST API puts at its name's end."""
    return {**_account(account), "login": account.login.removesuffix("[bot]")}


class _Root:
    """What the caller can ask for."""

    def __init__(self, world: World, caller: Caller, site: Site) -> None:
        self.world, self.caller, self.site = world, caller, site

    def fields(self) -> Fields:
        """The fields of `query` and of `mutation`."""
        assert self.caller.token is not None
        return {
            "viewer": _account(self.caller.token.account),
            "repository": self._find_repository,
            "nodes": lambda given: [self._node(id) for id in given["ids"]],
            "node": lambda given: self._node(given["id"]),
            "search": self._search,
            "resolveReviewThread": self._resolve_thread,
        }

    def _visible(self) -> list[Repository]:
        found = self.world.repositories.values()
        return [r for r in found if access.role(self.caller.token, r) != "none"]

    def _find_repository(self, given: Fields) -> Fields:
        name = f"{given['owner']}/{given['name']}"
        found = {**self.world.moved, **self.world.repositories}.get(name.lower())
        if found is None or found not in self._visible():
            raise TypedError(f"Could not resolve to a Repository with the name '{name}'.")
        return self._repository(found)

    def _node(self, id: str) -> Fields:
        number = b64decode(id).rpartition(b":")[2]
        for repository in self._visible():
            for kind in ("comments", "reviews", "review_comments"):
                for text in repository.texts(kind):
                    if b"%d" % text.id == number:
                        return self._text(text)
        raise TypedError(f"Could not resolve to a node with the global id of '{id}'.")

    def _search(self, given: Fields) -> Fields:
        """The pull requests that a search finds, the newest first."""
        words = dict(word.split(":", 1) for word in given["query"].split())
        if words.pop("is") != "pr" or set(words) - {"repo", "author", "head", "created"}:
            raise GraphQLError("this search is not served")
        author = words["author"]
        login = f"{author.removeprefix('app/')}[bot]" if author.startswith("app/") else author
        since = datetime.fromisoformat(words["created"].removeprefix(">=")).replace(tzinfo=UTC)
        found = [
            issue
            for repository in self._visible()
            if repository.full_name.lower() == words["repo"].lower()
            for issue in repository.pulls
            if issue.pull
            and issue.author.login.lower() == login.lower()
            and issue.pull.head.startswith(words["head"])
            and issue.created_at >= since
        ]
        return connection(found[::-1], self._issue, given)

    def _resolve_thread(self, given: Fields) -> Fields:
        """As GitHub has it: who may write, and of an App or Action only with both permissions."""
        id, token = given["input"]["threadId"], self.caller.token
        for repository in self._visible():
            for root in repository.texts("review_comments"):
                if node_id("PullRequestReviewThread", root.id) == id:
                    permissions = ("pull_requests", "contents")
                    if token is None or not (
                        access.has_role(token, repository, "write")
                        and all(access.has_permission(token, p, "write") for p in permissions)
                    ):
                        raise TypedError("Resource not accessible by integration", "FORBIDDEN")
                    root.resolved = True
                    return {"thread": self._thread(root)}
        raise TypedError(f"Could not resolve to a node with the global id of '{id}'")

    def _text(self, given: Text) -> Fields:
        """The fields of a text's REST document, under the names that they have here."""
        document = documents.render(self.site, given)
        edited_at = given.updated_at if given.updated_at != given.created_at else None
        fields = {
            **{re.sub("_(.)", lambda m: m[1].upper(), name): document[name] for name in document},
            "id": document["node_id"],
            "databaseId": given.id,
            "fullDatabaseId": str(given.id),
            "url": document["html_url"],
            "author": _author(given.author),
            "body": given.body or "",
            "createdAt": given.created_at,
            "lastEditedAt": edited_at,
            "isMinimized": bool(given.minimized),
            "minimizedReason": given.minimized or None,
            "__typename": "IssueComment",
        }
        if isinstance(given, Review):
            fields = {"submittedAt": None, **fields, "commit": {"oid": given.commit}}
            fields["__typename"] = "PullRequestReview"
        if isinstance(given, ReviewComment):
            fields |= {
                "publishedAt": given.created_at,
                "state": "SUBMITTED",
                "pullRequestReview": {"fullDatabaseId": str(given.review_id)},
                "__typename": "PullRequestReviewComment",
            }
        return fields

    def _issue(self, issue: Issue) -> Fields:
        """An issue or a pull request."""
        return {
            **self._text(issue),
            "__typename": "Issue",
            "state": issue.state.upper(),
            "closed": issue.state == "closed",
            "lastEditedAt": issue.last_edited_at,
            "issueType": None,
            "repository": {"nameWithOwner": issue.repository.full_name},
            "labels": _pages(issue.labels, lambda name: {"name": name}),
            "assignees": _pages(issue.assignees, _account),
            "comments": _pages(issue.comments, self._text),
            "timelineItems": lambda given: {"nodes": self._timeline(issue, given)},
            "closedByPullRequestsReferences": lambda given: {"nodes": self._closers(issue, given)},
            **(self._pull(issue) if issue.pull else {}),
        }

    def _pull(self, issue: Issue) -> Fields:
        """What a pull request has in addition to, or otherwise than, an issue."""
        pull = issue.pull
        assert pull is not None
        roots = [comment for comment in issue.review_comments if comment.in_reply_to is None]
        return {
            "__typename": "PullRequest",
            "mergedAt": pull.merged_at,
            "state": "MERGED" if pull.merged_at else issue.state.upper(),
            "headRefName": pull.head,
            "headRefOid": issue.tips()[1],
            "baseRefName": pull.base,
            "headRepository": {"nameWithOwner": pull.head_repository.full_name},
            "reviewThreads": _pages(roots, self._thread),
            "reviews": _pages(issue.reviews, self._text),
            "closingIssuesReferences": _pages(closed_issues(issue), self._issue),
        }

    def _closers(self, issue: Issue, given: Fields) -> list[Fields]:
        """Those that were closed unmerged only when they are asked for."""
        return [
            self._issue(other)
            for other in issue.repository.pulls
            if other.pull and issue in closed_issues(other)
            if given.get("includeClosedPrs") or other.state == "open" or other.pull.merged_at
        ]

    def _thread(self, root: ReviewComment) -> Fields:
        """A conversation on lines, by its first comment. It is outdated when the lines around it
        have changed since."""
        issue = root.issue
        base, head = issue.fork_point()
        outdated = issue.repository.git.patch(base, head, root.path) != root.diff_hunk
        comments = [c for c in issue.review_comments if root.id in (c.id, c.in_reply_to)]
        return {
            "id": node_id("PullRequestReviewThread", root.id),
            "isResolved": root.resolved,
            "isOutdated": outdated,
            "path": root.path,
            "line": None if outdated else root.line,
            "startLine": None if outdated else root.start_line,
            "originalLine": root.line,
            "diffSide": root.side,
            "comments": _pages(comments, self._text),
        }

    def _timeline(self, issue: Issue, given: Fields) -> list[Fields]:
        kinds = {name.replace("_", "").lower() for name in given["itemTypes"]}
        since = datetime.fromisoformat(given.get("since") or "0001-01-01T00:00:00Z")
        nodes = [
            _event(event)
            for event in issue.events
            if _EVENTS[event.event].lower() in kinds and event.at >= since
        ]
        return nodes[: given["first"]] if "first" in given else nodes[-given["last"] :]

    def _repository(self, repository: Repository) -> Fields:
        git = repository.git

        def numbered(given: Fields) -> Fields:
            found = repository.issues.get(given["number"])
            if found is None:
                raise TypedError(f"Could not resolve to an issue with number {given['number']}.")
            return self._issue(found)

        def file(commit: str, path: str) -> Fields | None:
            found = git.text("ls-tree", commit, "--", path).split()
            if not found:
                return None
            content = git.blob(found[2])
            text = content[:MOST_TEXT].decode("utf-8", "replace")
            cut = len(content) > MOST_TEXT
            return {"object": {"__typename": "Blob", "text": text, "isTruncated": cut}}

        def ref(name: str, prefix: str) -> Fields | None:
            if name not in git.refs(prefix):
                return None
            commit = git.text("rev-parse", name)
            target = {
                "__typename": "Commit",
                "oid": commit,
                "file": lambda given: file(commit, given["path"]),
            }
            return {"name": name.removeprefix(prefix), "target": target}

        def refs(given: Fields) -> Fields:
            prefix = given["refPrefix"]
            return {
                "nodes": [ref(name, prefix) for name in sorted(git.refs(prefix))][: given["first"]]
            }

        default = f"refs/heads/{repository.default_branch}"
        return {
            "id": node_id("Repository", repository.id),
            "databaseId": repository.id,
            "nameWithOwner": repository.full_name,
            "isPrivate": repository.private,
            **dict.fromkeys(("issue", "pullRequest", "issueOrPullRequest"), numbered),
            "defaultBranchRef": lambda _: ref(default, "refs/heads/"),
            "ref": lambda given: ref(given["qualifiedName"], "refs/"),
            "refs": refs,
        }


def _event(event: IssueEvent) -> Fields:
    words = event.words[0] if event.words else None
    return {
        "__typename": _EVENTS[event.event],
        "createdAt": event.at,
        "actor": _author(event.account),
        "label": {"name": words},
        "previousTitle": words,
    }
