"""Jobs in a transaction of your own database, where `jobweaver outbox install` has made jobweaver.enqueue."""

from __future__ import annotations

import json
import uuid
from typing import Any, Protocol

from ._steps import JobRequest, dump

STATEMENT = "select jobweaver.enqueue(%s, %s::text::jsonb, %s::text::jsonb)"


class _Cursor(Protocol):
    def fetchone(self) -> Any: ...


class Connection(Protocol):
    """A connection or cursor of psycopg."""

    def execute(self, query: Any, params: Any, /) -> Any: ...


def enqueue_parameters(job: JobRequest) -> tuple[str, str, str]:
    """Returns the parameters of STATEMENT, for other drivers: job type, payload, options. The job gets an id, which is its key."""
    options = dump(job)
    if "idempotencyKey" in options or "jobId" in options:
        raise ValueError("an enqueued job is given its id, and needs no idempotency_key or job_id")
    job_type, payload = options.pop("jobType"), options.pop("payload")
    return job_type, json.dumps(payload), json.dumps(options)


def enqueue(connection: Connection, job: JobRequest) -> uuid.UUID:
    """Enqueues a job in the connection's transaction and returns its id. The job exists if and only if the transaction commits."""
    cursor: _Cursor = connection.execute(STATEMENT, enqueue_parameters(job))
    return _id(cursor.fetchone())


async def enqueue_async(connection: Connection, job: JobRequest) -> uuid.UUID:
    """The same on a psycopg.AsyncConnection."""
    cursor = await connection.execute(STATEMENT, enqueue_parameters(job))
    return _id(await cursor.fetchone())


def _id(row: Any) -> uuid.UUID:
    return row[0] if isinstance(row[0], uuid.UUID) else uuid.UUID(row[0])
