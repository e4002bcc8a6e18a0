"""A webhook that does no more than it must: FastAPI, the signature, one insert.

    python bench/peers/bare_webhook.py DATABASE_URL SECRET PORT

DATABASE_URL is of PostgreSQL, or a file's name for SQLite. SECRET is that of the signatures.
"""

import hashlib
import hmac
import sqlite3
import sys
import threading
from collections.abc import Callable

import psycopg
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from starlette.concurrency import run_in_threadpool


def postgres(url: str) -> Callable[[str, str, bytes], None]:
    """Insert by one connection for each thread."""
    local = threading.local()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (id text PRIMARY KEY, event text, body bytea)")

    def insert(id: str, event: str, body: bytes) -> None:
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(url, autocommit=True)
        local.connection.execute(
            "INSERT INTO bare VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (id, event, body)
        )

    return insert


def sqlite(file: str) -> Callable[[str, str, bytes], None]:
    """Insert by one connection and a lock."""
    connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE bare (id text PRIMARY KEY, event text, body blob)")
    lock = threading.Lock()

    def insert(id: str, event: str, body: bytes) -> None:
        with lock:
            connection.execute(
                "INSERT INTO bare VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (id, event, body)
            )

    return insert


def create(insert: Callable[[str, str, bytes], None], secret: str) -> FastAPI:
    """The application."""
    app = FastAPI()

    @app.post("/webhook", status_code=202)
    async def webhook(request: Request) -> dict[str, str]:
        body = await request.body()
        wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(wanted, request.headers["x-hub-signature-256"]):
            raise HTTPException(401)
        id, event = request.headers["x-github-delivery"], request.headers["x-github-event"]
        await run_in_threadpool(insert, id, event, body)
        return {"message": "stored"}

    return app


if __name__ == "__main__":
    where, secret, port = sys.argv[1:]
    uvicorn.run(
        create(postgres(where) if where.startswith("postgresql") else sqlite(where), secret),
        port=int(port),
        log_level="warning",
        access_log=False,
    )
