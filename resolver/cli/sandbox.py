"""`resolver sandbox serve`: serves sandboxes to runs on other machines."""

from collections.abc import Mapping

import click

from resolver.entrypoints.sandbox_server import serve_sandboxes
from resolver.runtime.service.sandboxes import ServiceBounds


@click.group()
def command() -> None:
    """Serve sandboxes to runs on other machines."""


@command.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8010,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; with 0, a free port is chosen and printed first.",
)
@click.option("--tls-cert", help="Certificate chain, PEM; with --tls-key, the server uses TLS.")
@click.option("--tls-key", help="Private key of the certificate, PEM.")
@click.option(
    "--plain-http", is_flag=True, help="Accept connections from other machines without TLS."
)
@click.option(
    "--runtime",
    default="docker",
    show_default=True,
    type=click.Choice(["docker", "local"]),
    help="Kind of sandbox: a container, or a directory and processes of this machine.",
)
@click.option("--image", "images", multiple=True, default=["*"], show_default=True,
              help="Pattern of allowed images; may be repeated.")  # fmt: skip
@click.option("--max-memory", default="4g", show_default=True, help="Memory limit of one sandbox.")
@click.option("--max-cpus", default=2.0, show_default=True, type=click.FloatRange(0.1, 1024),
              help="Number of processors of one sandbox.")  # fmt: skip
@click.option("--max-pids", default=1024, show_default=True,
              type=click.IntRange(16, 1_000_000), help="Maximum number of processes of one "
              "sandbox.")  # fmt: skip
@click.option("--max-disk", default=10.0, show_default=True, type=click.FloatRange(0.01, 1e6),
              help="Gigabytes that one sandbox may write.")  # fmt: skip
@click.option("--max-sandboxes", default=4, show_default=True, type=click.IntRange(1, 200),
              help="Maximum number of sandboxes at a time.")  # fmt: skip
@click.option("--idle", default=120.0, show_default=True, type=click.FloatRange(1, 86_400),
              help="Seconds without a request of its run after which a sandbox is "
              "removed.")  # fmt: skip
@click.option("--name", help="Name of this server on its engine; host name and port by default.")
@click.pass_obj
def serve(
    environment: Mapping[str, str],
    /,
    host: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    plain_http: bool,
    runtime: str,
    images: tuple[str, ...],
    max_memory: str,
    max_cpus: float,
    max_pids: int,
    max_disk: float,
    max_sandboxes: int,
    idle: float,
    name: str | None,
) -> int:
    """Serve sandboxes to clients that have the token.

    \b
    Needs in the environment:
      RESOLVER_SANDBOX_TOKEN  at least 16 characters; the runs have it as RESOLVER_REMOTE_TOKEN
    Runs use it with:
      resolver resolve ... --runtime remote, and RESOLVER_REMOTE=https://HOST:PORT

    Anybody who has the token can run programs in sandboxes, within the limits given here. SIGTERM
    removes all sandboxes and stops the server. `GET /healthz` needs no token.
    """
    limits = ServiceBounds(
        runtime,
        images,
        max_memory,
        max_cpus,
        max_pids,
        int(max_disk * 10**9),
        max_sandboxes,
        idle,
    )
    serve_sandboxes(
        environment,
        limits,
        host,
        port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        plain_http=plain_http,
        name=name,
    )
    return 0
