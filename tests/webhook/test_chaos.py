"""A short form of `make chaos`: a server, a worker and PostgreSQL; a process is killed twice."""

from pathlib import Path

from scripts.chaos import Chaos, WebServer, WorkerServer
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.postgres import Postgres
from tests.parts.runs import RESOLVER
from tests.webhook.serving import Forge, Plans, Server

LEASE = ("--lease-seconds", "4")


def test_nothing_is_lost_or_done_twice_when_processes_are_killed(
    tmp_path: Path, github: GitHubServer, model_endpoint: ModelEndpoint, postgres: Postgres
) -> None:
    """Processes of the server are killed at random moments while runs are active: each request has
    one branch, one pull request and one final comment in the end."""
    forge, plans = Forge(github), Plans(model_endpoint)
    with postgres.new_database() as url:
        address = url.render_as_string(hide_password=False)
        processes: dict[Server, tuple[str, ...]] = {}
        for kind, name in ((WebServer, "web"), (WorkerServer, "worker")):
            (tmp_path / name).mkdir()
            process = kind(tmp_path / name, forge, model_endpoint, RESOLVER_DATABASE_URL=address)
            process.program = RESOLVER  # it starts sooner
            processes[process] = ("--concurrency", "2", *LEASE)
        try:
            for process, options in processes.items():
                process.start(*options)
            chaos = Chaos(processes, forge, plans, None, seed=2)
            chaos.targets = {"process": chaos.kill_process}
            chaos.prepare(3, repositories=2)
            chaos.run(5, kills=2)
            assert all(mention.accepted and mention.ended_at for mention in chaos.mentions)
            assert chaos.problems() == []
        finally:
            for process in processes:
                process.close()
