"""Requests that an earlier release has left in the queues of DBOS."""

from pathlib import Path

from dbos import DBOSClient

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.request_workflows import STORED_FORM
from resolver.models.run import Trigger
from resolver.runs.common import trigger_for_target
from resolver.storage.database import parse_database_url
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.webhook.serving import Forge, Plans, Server, plan_of_a_fix, until


def test_what_waited_in_the_queues_of_an_earlier_release_is_done(
    tmp_path: Path, github: GitHubServer, model_endpoint: ModelEndpoint
) -> None:
    forge, plans = Forge(github), Plans(model_endpoint)
    plans.add("fix", *plan_of_a_fix())
    issue = forge.issue(forge.repository("octo/calc"), "fix")
    trigger = trigger_for_target(Settings(), "issue_comment", forge.mention(issue))
    assert isinstance(trigger, Trigger)
    server = Server(tmp_path, forge, model_endpoint)
    try:
        server.start()
        until(lambda: server.worker_state() == "running")  # the tables of DBOS are made
        url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        client = DBOSClient(system_database_url=url.render_as_string())
        for name, queue in (("delivery", "runs"), ("announce", "commands")):
            client.enqueue(
                {
                    "queue_name": queue,
                    "workflow_name": name,
                    "workflow_id": f"before.{name}",
                    "app_version": STORED_FORM,
                    "queue_partition_key": "octo/calc" if queue == "runs" else None,
                },
                trigger.model_dump_json(),
            )
        client.destroy()
        until(lambda: forge.done_once(issue))
    finally:
        server.close()
    server.check()
