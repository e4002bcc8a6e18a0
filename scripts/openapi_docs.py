"""Prints the OpenAPI document of the server of `resolver serve`, for docs/reference/openapi.json.

A server publishes the same document at /openapi.json. One without a public URL has no pages, and
its document does not have them either.
"""

import json
import tempfile
from pathlib import Path

from fastapi import FastAPI

from resolver.entrypoints.webhook.openapi import create_openapi_document
from resolver.entrypoints.webhook.run_pages import RunPages, add_run_pages
from resolver.entrypoints.webhook.webhook import create_webhook_app
from resolver.storage.run_folders import LocalRunFolders


def openapi_document() -> str:
    """Return the document of a server with all routes."""

    def add_all_pages(app: FastAPI) -> None:
        add_run_pages(app, RunPages(LocalRunFolders(Path(folder)), ""))

    with tempfile.TemporaryDirectory() as folder:
        app = create_webhook_app("", lambda *_: "", pages=add_all_pages)
        document = create_openapi_document(app)
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    print(openapi_document(), end="")
