"""Describes the machine that a run is started on, with its tokens for GitHub, and creates the
sandbox that the settings name.

The tokens are a given one, or those of a GitHub App, which are issued for one repository each.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from docker import DockerClient

from resolver.config.image_reference import DOCKERFILE
from resolver.config.settings import Settings
from resolver.config.temporary_directory import temporary_directory
from resolver.errors import UsageError
from resolver.events.stream import Clock, utc_now
from resolver.git.git import Credential
from resolver.git.tree import GITLINK, read_sizes, read_tree
from resolver.git.workspace import Workspace
from resolver.github.client import access, app
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.egress import EgressPolicy, system_resolve
from resolver.runtime.engine import connect_engine, engine_answers, remove_leftovers
from resolver.runtime.environment.environment import Environment, find_environment
from resolver.runtime.environment.images import build_image, requested_image
from resolver.runtime.environment.plan import find_setup
from resolver.runtime.environment.survey import survey
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from resolver.security.redaction import IssuedTokens, Redactor

COMMAND_SECONDS = 120.0
"""Seconds that a command may take unless the agent asks for more."""

BUILD_SECONDS = 3600
"""Seconds that a call to the engine may take which builds an image."""

MAX_EGRESS_BYTES = 1_000_000_000
"""Maximum number of bytes of all connections of a run, both ways."""

RequireLease = Callable[[], None]
"""Raises LeaseLost if this process may not write any more. Never blocks."""


class ForgeTokens:
    """Issues tokens, one source for each repository: an installation token is limited to its
    repository and is never shown to another one.

    issued_tokens: learns each token before it is used, so that redactors know it.
    require_lease: raises LeaseLost when this process may not write any more; then no token is
        returned, and a credential that was returned before can't be used.
    """

    def __init__(
        self,
        issued_tokens: IssuedTokens | None = None,
        now: Clock = utc_now,
        require_lease: RequireLease | None = None,
    ) -> None:
        self.issued_tokens = issued_tokens or IssuedTokens()
        self.require_lease = require_lease
        self._now = now
        self._lock = threading.Lock()
        self._sources: dict[str, app.InstallationTokens] = {}

    def source(self, settings: Settings, repository: str) -> access.TokenSource | None:
        """Return the source of tokens for OWNER/NAME; None if the settings have no token.

        An App takes precedence over a token, because an Action always has a token. Raises
        UsageError if only one of the App's id and key is set.
        """
        source = self._find_source(settings, repository)
        if source is None or self.require_lease is None:
            return source
        return access.LeasedTokens(source, self.require_lease)

    def _find_source(self, settings: Settings, repository: str) -> access.TokenSource | None:
        if not settings.has_app:
            token = settings.github_token
            return access.FixedToken(token.get_secret_value()) if token else None
        app_access = self.app(settings)
        access.check_repository(repository)
        with self._lock:
            tokens = self._sources.get(repository.casefold())
            if tokens is None:
                tokens = app.InstallationTokens(
                    app_access, repository, self._remember_token, self._now
                )
                self._sources[repository.casefold()] = tokens
            return tokens

    def credential(self, settings: Settings, repository: str) -> Credential | None:
        """Return the current credential for git and OWNER/NAME; None without a token.

        Do not store it: its token may expire. Raises ForgeError.
        """
        source = self.source(settings, repository)
        if source is None:
            return None
        return Credential(settings.github_server_url, source.token(), self.require_lease)

    def app(self, settings: Settings, *, is_brief: bool = False) -> app.AppAccess:
        """Return access as the App itself.

        is_brief: give up soon during an outage. Raises UsageError unless the settings have both the
        App's id and its key.
        """
        if settings.app_id is None or settings.app_private_key is None:
            missing = "app_id" if settings.app_id is None else "app_private_key"
            raise UsageError(
                f"the GitHub App is only partly configured: {missing} is missing",
                f"set RESOLVER_{missing.upper()}, or leave out both and set GITHUB_TOKEN",
            )
        key = settings.app_private_key.get_secret_value()
        app_key = app.AppKey(settings.app_id, key, self._remember_token, self._now)
        patient = access_of(settings, app_key, harmless=True)
        return app.AppAccess(patient.with_short_timeouts() if is_brief else patient)

    def _remember_token(self, secret: str, expires_at: datetime) -> None:
        self.issued_tokens.add(secret, expires_at, self._now())


def access_of(
    settings: Settings, source: access.TokenSource, harmless: bool = False
) -> access.GitHubAccess:
    """Return the access to the GitHub that the settings name."""
    return access.GitHubAccess(
        source,
        api_url=settings.github_api_url,
        server_url=settings.github_server_url,
        graphql_url=settings.github_graphql_url,
        bot_login=settings.bot_login or None,
        harmless=harmless,
        pause_between_writes=settings.pace.write_interval,
        retries=settings.pace.retries,
    )


@dataclass(frozen=True)
class RunHost:
    """The properties of the machine that a run is started on.

    The entry points build it; nothing below them reads the environment itself.

    environment: for the address of the container engine and the local sandbox's PATH.
    cache: folder for the toolbox.
    secrets: values that must never be written anywhere, in addition to those of the settings.
    clones: folder for clones that later runs reuse; None to keep none.
    tokens: the tokens for GitHub; those of an App are issued while runs are active.
    """

    environment: Mapping[str, str]
    cache: Path
    secrets: tuple[str, ...] = ()
    clones: Path | None = None
    tokens: ForgeTokens = field(default_factory=ForgeTokens)

    def require_lease(self) -> None:
        """Raise LeaseLost if this process may not write any more."""
        if self.tokens.require_lease is not None:
            self.tokens.require_lease()

    def redactor(self, settings: Settings) -> Redactor:
        """Return a redactor that knows the secrets of the settings and of the environment, and
        every token from the moment it is issued."""
        return _shared_redactor((*settings.secrets, *self.secrets), self.tokens.issued_tokens)


# Building the index of what to search for takes milliseconds, and every stage of a run asks for it.
@lru_cache(maxsize=4)
def _shared_redactor(secrets: tuple[str, ...], issued_tokens: IssuedTokens) -> Redactor:
    """Return one redactor for all callers with these secrets and this set of issued tokens."""
    return Redactor(secrets, issued_tokens)


def runtime_kind(settings: Settings, host: RunHost) -> str:
    """Return "docker" or "local". The setting "auto" means docker if an engine answers, otherwise
    local."""
    if settings.runtime == "remote" and not host.environment.get("DOCKER_HOST"):
        raise UsageError(
            "the remote runtime needs a Docker engine on another machine",
            "set DOCKER_HOST to its address, such as tcp://HOST:2376",
        )
    if settings.runtime == "auto":
        return "docker" if engine_answers(host.environment) else "local"
    return "local" if settings.runtime == "local" else "docker"


def engine_environment(settings: Settings, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables by which the engine is found."""
    address = environment.get("DOCKER_HOST", "")
    # Whoever reaches an engine is root on its machine: over TCP, only with verified certificates.
    verifies = settings.runtime == "remote" and address.startswith("tcp:")
    return {**environment, "DOCKER_TLS_VERIFY": "1"} if verifies else environment


def open_environment(
    settings: Settings, kind: str, workspace: Workspace, host: RunHost, *, keep: bool = True
) -> Environment:
    """Return the image that the sandbox is created from and the set-up that is run in it.

    keep: True if the environment may be kept for later runs. It never is for the head of a pull
        request: the set-up executes unmerged code there, and no later run may start with files
        that it left.
    """
    trusted = workspace.trusted
    plan = find_setup(trusted.read, settings.setup)
    surveyed = survey(trusted.read)
    # In a local sandbox, the usual installation would change this machine's own programs.
    can_install = all(_is_reachable(settings, host) for host in surveyed.hosts)
    if plan is None and kind != "local" and can_install:
        plan = surveyed.plan
    suggested = None if plan else surveyed.setup
    if kind == "local":
        return Environment("", plan, suggested=suggested)
    is_built, keeps = settings.image.startswith(DOCKERFILE), keep and not workspace.is_unmerged
    image = "" if is_built else requested_image(settings.image, trusted.read)
    if not is_built and (plan is None or not keeps):
        return Environment(image, plan, suggested=suggested)
    engine = connect_engine(engine_environment(settings, host.environment), BUILD_SECONDS)
    with closing(engine) as client:
        if is_built:
            image = _build_image(client, settings, trusted)
        if plan is None or not keeps:
            return Environment(image, plan, suggested=suggested)
        tree = workspace.tree(workspace.base)
        return find_environment(client, image, plan, workspace.identity, tree)


MAX_CONTEXT_BYTES = 1 << 30
"""Maximum size of the files that an image is built from: a few blobs may stand for any number."""


def _build_image(client: DockerClient, settings: Settings, trusted: Workspace) -> str:
    """Return the id of the image that is built from the trusted commit, if the operator allows it.

    Raises UsageError and SandboxError.
    """
    dockerfile = settings.image.removeprefix(DOCKERFILE)
    if trusted.read(dockerfile) is None:
        raise UsageError(
            f"the setting image names {dockerfile!r}, which is not in the repository",
            "correct the path: it starts at the repository's root",
        )
    if not settings.build_images:
        raise UsageError(
            f"the image is to be built from {dockerfile}, and building is not allowed",
            "a build runs the repository's own commands with the engine's network: "
            "allow it with `RESOLVER_BUILD_IMAGES=true`, or name an image",
        )
    blobs = [e.id for e in read_tree(trusted.git, trusted.base) if e.mode != GITLINK]
    sizes = read_sizes(trusted.git, blobs)
    if sum(sizes[blob] for blob in blobs) > MAX_CONTEXT_BYTES:
        raise UsageError(
            f"the files to build {dockerfile} from have more than {MAX_CONTEXT_BYTES:,} bytes",
            "build the image elsewhere, push it to a registry, and set image to its name",
        )
    with temporary_directory() as folder:
        tar = folder / "context.tar"
        trusted.git.run("archive", "--format=tar", f"--output={tar}", trusted.base)
        with tar.open("rb") as context:
            return build_image(client, dockerfile, trusted.identity, context)


def _is_reachable(settings: Settings, host: str) -> bool:
    try:
        return settings.allow_list.find(host, 443) is not None
    except ValueError:
        return False


def open_runtime(
    settings: Settings,
    kind: str,
    run: str,
    host: RunHost,
    image: str,
    local_names: tuple[str, ...] = (),
) -> Runtime:
    """Return the sandbox, not yet started: use it as a context manager. Leftovers of an earlier,
    killed attempt of the run are removed.

    local_names: names that resolve to the loopback address in a Docker sandbox, for services.
    """
    spec = SandboxSpec(
        image=image,
        run=run,
        memory=settings.memory,
        egress=settings.allow_list.entries,
        browser_image=settings.browser_image,
    )
    machine: Machine
    if kind == "docker":
        engine = connect_engine(engine_environment(settings, host.environment))
        remove_leftovers(engine, run)
        machine = DockerMachine(spec, Toolbox(host.cache), engine, local_names)
    else:
        machine = LocalMachine(spec, host.environment)
    policy = EgressPolicy(settings.allow_list, MAX_EGRESS_BYTES, system_resolve)
    return Runtime(machine, COMMAND_SECONDS, policy)
