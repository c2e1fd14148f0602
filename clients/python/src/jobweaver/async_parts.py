"""The parts of AsyncClient: batches, flows, schedules and what else an installation has.

`make generate-clients` makes parts.py of this file, for Client.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from . import models
from ._steps import AlertRequest, BatchRequest, Filter, FlowRequest, ScheduleRequest, Send, dump, is_finished, path, query, with_key

if TYPE_CHECKING:
    from .client import AsyncClient

Id = uuid.UUID | str
ControlKind = Literal["queue", "type", "owner", "fairnessKey"]
Role = Literal["submit", "read", "operate", "work", "admin"]


class AsyncBatches:
    """The batches: groups of jobs that end when all of them have ended."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, batch: BatchRequest) -> uuid.UUID:
        """Creates a batch with all of its jobs, or no batch, and returns its id.

        Other jobs can join it by their batch_id until it is closed. If it has no idempotency_key it gets one, so that a repeated
        request makes no second batch.
        """
        send = Send("POST", "/api/batches", json=with_key(batch), repeatable=True, submits=True)
        return (await self._client._model(models.BatchState, send)).batch_id

    async def get(self, batch_id: Id) -> models.Batch:
        return await self._client._model(models.Batch, Send("GET", path("batches", batch_id)))

    async def wait(self, batch_id: Id, *, timeout: float | None = None) -> models.Batch:
        """Returns a batch once it has ended, in any state. Raises TimeoutError if it takes longer."""
        return await self._client._wait(models.Batch, path("batches", batch_id), is_finished, timeout)

    async def list(self, *, status: str | None = None, owner_id: str | None = None) -> AsyncIterator[models.BatchFields]:
        """Yields the batches that match, newest first, page by page. Those that have not ended have no counts."""
        params = query({"status": status, "ownerId": owner_id})
        async for page in self._client._pages(models.BatchPage, "/api/batches", params):
            for batch in page.batches:
                yield batch

    async def close(self, batch_id: Id) -> None:
        """Closes a batch, so that no more jobs can join it."""
        await self._client._call(Send("POST", path("batches", batch_id, "close"), repeatable=True))

    async def cancel(self, batch_id: Id) -> uuid.UUID:
        """Closes a batch and cancels its jobs by an operation, whose id it returns."""
        return (await self._client._model(models.BatchOperation, Send("POST", path("batches", batch_id, "cancel")))).operation_id

    async def retry(self, batch_id: Id) -> uuid.UUID:
        """Runs the FAILED and CANCELLED jobs of a batch again by an operation, whose id it returns."""
        return (await self._client._model(models.BatchOperation, Send("POST", path("batches", batch_id, "retry")))).operation_id


class AsyncFlows:
    """The flows: closed batches whose jobs wait for each other."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, flow: FlowRequest) -> models.MadeFlow:
        """Submits a flow, and returns the ids of its jobs by their names.

        If it has no idempotency_key it gets one, so that a repeated request makes no second flow.
        """
        send = Send("POST", "/api/flows", json=with_key(flow), repeatable=True, submits=True)
        return await self._client._model(models.MadeFlow, send)

    async def get(self, flow_id: Id) -> models.JobFlow:
        """Returns a flow with its graph and the states of its jobs."""
        return await self._client._model(models.JobFlow, Send("GET", path("flows", flow_id)))

    async def wait(self, flow_id: Id, *, timeout: float | None = None) -> models.JobFlow:
        """Returns a flow once it has ended, in any state. Raises TimeoutError if it takes longer."""
        return await self._client._wait(models.JobFlow, path("flows", flow_id), is_finished, timeout)

    async def list(self, *, status: str | None = None, owner_id: str | None = None) -> AsyncIterator[models.FlowFields]:
        """Yields the flows that match, newest first, page by page. Those that have not ended have no counts."""
        params = query({"status": status, "ownerId": owner_id})
        async for page in self._client._pages(models.FlowPage, "/api/flows", params):
            for flow in page.flows:
                yield flow

    async def cancel(self, flow_id: Id) -> uuid.UUID:
        """Cancels the jobs of a flow by an operation, whose id it returns."""
        return (await self._client._model(models.FlowOperation, Send("POST", path("flows", flow_id, "cancel")))).operation_id

    async def retry(self, flow_id: Id, *, from_: Sequence[str] | None = None, all_: bool = False) -> int:
        """Runs the FAILED and CANCELLED jobs of a flow again, in the order of its graph, and returns how many these may be.

        With from_, the jobs with these names and all that come after them run as new jobs; with all_, the whole flow.
        """
        again = {"from": [*from_]} if from_ is not None else {"all": True} if all_ else None
        return (await self._client._model(models.FlowRetry, Send("POST", path("flows", flow_id, "retry"), json=again))).jobs


class AsyncSchedules:
    """The schedules: those of the key's owner, or those of `of`."""

    def __init__(self, client: AsyncClient, owner_id: str | None = None) -> None:
        self._client, self._owner_id, self._owner = client, owner_id, query({"ownerId": owner_id})

    def of(self, owner_id: str) -> AsyncSchedules:
        """The schedules of an owner, for an administrator's key and where authentication is off."""
        return AsyncSchedules(self._client, owner_id)

    def _send(self, method: str, name: str, *more: str, repeatable: bool = False) -> Send:
        return Send(method, path("schedules", name, *more), self._owner, repeatable=repeatable)

    def _body(self, schedule: ScheduleRequest) -> dict[str, object]:
        """Where authentication is off, the owner of a schedule is that of its job."""
        body = dump(schedule)
        if self._owner_id is not None:
            body["job"].setdefault("ownerId", self._owner_id)
        return body

    async def create(self, schedule: ScheduleRequest) -> models.Schedule:
        """Creates a schedule, which has a name. Raises Conflict if there is one with its name."""
        return await self._client._model(models.Schedule, Send("POST", "/api/schedules", json=self._body(schedule)))

    async def set(self, name: str, schedule: ScheduleRequest) -> models.Schedule:
        """Creates or replaces a schedule. With the same cron expression and time zone it continues; else its ticks begin anew."""
        send = Send("PUT", path("schedules", name), self._owner, json=self._body(schedule))
        return await self._client._model(models.Schedule, send)

    async def get(self, name: str) -> models.Schedule:
        return await self._client._model(models.Schedule, self._send("GET", name))

    async def list(self) -> AsyncIterator[models.Schedule]:
        """Yields all schedules by name, page by page."""
        async for page in self._client._pages(models.SchedulePage, "/api/schedules", self._owner):
            for schedule in page.schedules:
                yield schedule

    async def delete(self, name: str) -> None:
        """Deletes a schedule. Its jobs stay."""
        await self._client._call(self._send("DELETE", name))

    async def pause(self, name: str) -> models.Schedule:
        """Pauses a schedule: it submits no jobs until it is resumed."""
        return await self._client._model(models.Schedule, self._send("POST", name, "pause", repeatable=True))

    async def resume(self, name: str) -> models.Schedule:
        """Resumes a schedule. The ticks that fell into the pause are recorded as skipped."""
        return await self._client._model(models.Schedule, self._send("POST", name, "resume", repeatable=True))

    async def run(self, name: str) -> models.ScheduleRun:
        """Submits a job of a schedule now, also while it is paused."""
        return await self._client._model(models.ScheduleRun, self._send("POST", name, "run"))

    async def ticks(self, name: str) -> AsyncIterator[models.Tick]:
        """Yields the ticks of a schedule, newest first, page by page. The last 1,000 are kept, for 30 days."""
        async for page in self._client._pages(models.TickPage, path("schedules", name, "ticks"), self._owner):
            for tick in page.ticks:
                yield tick

    async def times(
        self, cron: str, *, time_zone: str | None = None, start_at: datetime | None = None, end_at: datetime | None = None
    ) -> Sequence[datetime]:
        """Returns the next five ticks of a cron expression that is not stored."""
        params = query({"cron": cron, "timeZone": time_zone, "startAt": start_at, "endAt": end_at})
        return (await self._client._model(models.ScheduleTimes, Send("GET", "/api/schedule-times", params))).upcoming


class AsyncAlerts:
    """The alerts: those of the key's owner, or those of `of`."""

    def __init__(self, client: AsyncClient, owner_id: str | None = None) -> None:
        self._client, self._owner_id, self._owner = client, owner_id, query({"ownerId": owner_id})

    def of(self, owner_id: str) -> AsyncAlerts:
        """The alerts of an owner, for an administrator's key and where authentication is off."""
        return AsyncAlerts(self._client, owner_id)

    def _send(self, method: str, name: str, *more: str, repeatable: bool = False) -> Send:
        return Send(method, path("alerts", name, *more), self._owner, repeatable=repeatable)

    def _body(self, alert: AlertRequest) -> dict[str, object]:
        body = dump(alert)
        if self._owner_id is not None:
            body.setdefault("ownerId", self._owner_id)
        return body

    async def create(self, alert: AlertRequest) -> models.Alert:
        """Creates an alert, which has a name. Raises Conflict if there is one with its name."""
        return await self._client._model(models.Alert, Send("POST", "/api/alerts", json=self._body(alert)))

    async def set(self, name: str, alert: AlertRequest) -> models.Alert:
        """Creates or replaces an alert."""
        send = Send("PUT", path("alerts", name), self._owner, json=self._body(alert))
        return await self._client._model(models.Alert, send)

    async def get(self, name: str) -> models.Alert:
        return await self._client._model(models.Alert, self._send("GET", name))

    async def list(self) -> AsyncIterator[models.Alert]:
        """Yields all alerts by name, page by page."""
        async for page in self._client._pages(models.AlertPage, "/api/alerts", self._owner):
            for alert in page.alerts:
                yield alert

    async def delete(self, name: str) -> None:
        """Deletes an alert with its notices."""
        await self._client._call(self._send("DELETE", name))

    async def pause(self, name: str) -> models.Alert:
        """Pauses an alert: it sends no notices until it is resumed."""
        return await self._client._model(models.Alert, self._send("POST", name, "pause", repeatable=True))

    async def resume(self, name: str) -> models.Alert:
        return await self._client._model(models.Alert, self._send("POST", name, "resume", repeatable=True))

    async def test(self, name: str) -> uuid.UUID:
        """Sends a notice now, and returns the id of the job that does."""
        return (await self._client._model(models.AlertTest, self._send("POST", name, "test"))).job_id

    async def notices(self, name: str) -> AsyncIterator[models.Notice]:
        """Yields the notices of an alert, newest first, page by page. The last 200 are kept."""
        async for page in self._client._pages(models.NoticePage, path("alerts", name, "notices"), self._owner):
            for notice in page.notices:
                yield notice


class AsyncQueues:
    """The queues."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, queue: str, *, workers: Literal["runjob", "pull"] = "runjob") -> models.QueueInfo:
        """Creates a queue. One that is there is left as it is, and a removal is taken back."""
        return await self._client._model(models.QueueInfo, Send("PUT", path("queues", queue), json={"workers": workers}))

    async def get(self, queue: str) -> models.QueueInfo:
        """Returns a queue. Raises NotFound once it is removed."""
        return await self._client._model(models.QueueInfo, Send("GET", path("queues", queue)))

    async def list(self) -> Sequence[models.QueueInfo]:
        """Returns all queues."""
        return (await self._client._model(models.QueueList, Send("GET", "/api/queues"))).queues

    async def remove(self, queue: str, *, drain: bool = False) -> None:
        """Begins the removal of a created queue.

        While jobs in it have not ended, that raises Conflict, unless drain is true: then the queue is removed when they have
        ended.
        """
        await self._client._call(Send("DELETE", path("queues", queue), query({"drain": drain or None})))

    async def shares(self, queue: str, *, q: str | None = None) -> AsyncIterator[models.Share]:
        """Yields what waits and runs for each fairness key of a queue, most waiting jobs first; q is a part of the key."""
        async for page in self._client._pages(models.SharePage, path("queues", queue, "shares"), query({"q": q})):
            for share in page.shares:
                yield share


class AsyncControls:
    """The controls: pauses, limits and weights of queues, job types, owners and fairness keys."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> Sequence[models.Control]:
        """Returns all controls."""
        return (await self._client._model(models.ControlPage, Send("GET", "/api/controls"))).controls

    async def get(self, kind: ControlKind, name: str) -> models.Control:
        """Returns a control. One that was never set has neither a pause nor limits, and version 0."""
        return await self._client._model(models.Control, Send("GET", path("controls", kind, name)))

    async def set(
        self,
        kind: ControlKind,
        name: str,
        *,
        paused: bool = False,
        max_running: int | None = None,
        starts_per_second: float | None = None,
        weight: int | None = None,
    ) -> models.Control:
        """Sets a whole control: set("queue", "mails", max_running=5) also ends a pause."""
        body = {"paused": paused, "maxRunning": max_running, "startsPerSecond": starts_per_second, "weight": weight}
        return await self._client._model(models.Control, Send("PUT", path("controls", kind, name), json=body))

    async def pause(self, kind: ControlKind, name: str) -> models.Control:
        """Pauses a queue, a job type, an owner or a fairness key: no attempts start. Its limits stay."""
        return await self._client._model(models.Control, Send("POST", path("controls", kind, name, "pause"), repeatable=True))

    async def resume(self, kind: ControlKind, name: str) -> models.Control:
        """Ends a pause. The limits stay."""
        return await self._client._model(models.Control, Send("POST", path("controls", kind, name, "resume"), repeatable=True))

    async def delete(self, kind: ControlKind, name: str) -> models.Control:
        """Removes the pause, the limits and the weight."""
        return await self._client._model(models.Control, Send("DELETE", path("controls", kind, name)))


class AsyncOperations:
    """The operations: commands for many jobs."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def start(
        self,
        command: Literal["cancel", "retry", "reschedule", "delete"],
        *,
        job_ids: Sequence[Id] | None = None,
        which: Filter | None = None,
        all_: bool = False,
        run_at: datetime | None = None,
        delay_ms: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.Operation:
        """Starts an operation on the jobs of a list, on those that match a filter, or on all.

        run_at or delay_ms is for reschedule. If it has no idempotency_key it gets one, so that a repeated request starts no
        second operation.
        """
        body = {
            "command": command,
            "jobIds": job_ids and [str(job_id) for job_id in job_ids],
            "filter": {"all": True} if all_ else which and which.body(),
            "runAt": run_at and run_at.isoformat(),
            "delayMs": delay_ms,
            "idempotencyKey": idempotency_key or str(uuid.uuid4()),
        }
        body = {name: value for name, value in body.items() if value is not None}
        return await self._client._model(models.Operation, Send("POST", "/api/operations", json=body, repeatable=True))

    async def get(self, operation_id: Id) -> models.Operation:
        return await self._client._model(models.Operation, Send("GET", path("operations", operation_id)))

    async def wait(self, operation_id: Id, *, timeout: float | None = None) -> models.Operation:
        """Returns an operation once it has ended, COMPLETED or ABORTED. Raises TimeoutError if it takes longer."""
        return await self._client._wait(models.Operation, path("operations", operation_id), is_finished, timeout)

    async def list(self) -> AsyncIterator[models.OperationFields]:
        """Yields the operations, newest first, page by page. Those that have ended are kept for 30 days."""
        async for page in self._client._pages(models.OperationPage, "/api/operations", ()):
            for operation in page.operations:
                yield operation

    async def abort(self, operation_id: Id) -> models.Operation:
        """Stops an operation before it reaches more jobs. Commands that were given stay in force."""
        return await self._client._model(models.Operation, Send("POST", path("operations", operation_id, "abort"), repeatable=True))


class AsyncDead:
    """The FAILED jobs. An operation runs many of them again."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self, which: Filter | None = None) -> AsyncIterator[models.JobSummary]:
        """Yields the FAILED jobs that match a filter, newest first, page by page."""
        async for page in self._client._pages(models.JobPage, "/api/jobs/dead", (which or Filter()).query()):
            for job in page.jobs:
                yield job

    async def groups(
        self,
        *,
        type: str | None = None,
        error_code: str | None = None,
        no_error_code: Literal[True] | None = None,
        owner_id: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> models.DeadGroups:
        """Counts FAILED jobs by job type and error code, the largest groups first: at most limit, which is up to 200."""
        names = {"type": type, "errorCode": error_code, "noErrorCode": no_error_code, "ownerId": owner_id}
        params = query(names | {"since": since, "limit": limit})
        return await self._client._model(models.DeadGroups, Send("GET", "/api/jobs/dead/groups", params))


class AsyncDeliveries:
    """The deliveries: the requests by which JobWeaver reports the ends of jobs to their callbackUrl."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self, *, status: Literal["PENDING", "DELIVERED", "FAILED"] | None = None) -> AsyncIterator[models.Delivery]:
        """Yields the deliveries of all jobs, newest first, page by page."""
        async for page in self._client._pages(models.DeliveryPage, "/api/deliveries", query({"status": status})):
            for delivery in page.deliveries:
                yield delivery

    async def of_job(self, job_id: Id) -> Sequence[models.Delivery]:
        """Returns the last 200 deliveries of a job, newest first."""
        return (await self._client._model(models.JobDeliveries, Send("GET", path("jobs", job_id, "deliveries")))).deliveries

    async def retry(self, job_id: Id, version: int) -> models.Delivery:
        """Sends a delivery once more."""
        return await self._client._model(models.Delivery, Send("POST", path("jobs", job_id, "deliveries", str(version), "retry")))


class AsyncRejected:
    """The rejected records: Kafka records that a function could not use."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(
        self,
        *,
        function: str | None = None,
        topic: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        redriven: bool | None = None,
    ) -> AsyncIterator[models.RejectedRecord]:
        """Yields the rejected records that match, newest first, page by page."""
        params = query({"function": function, "topic": topic, "since": since, "until": until, "redriven": redriven})
        async for page in self._client._pages(models.RejectedPage, "/api/rejected", params):
            for record in page.rejected:
                yield record

    async def get(self, rejected_id: Id) -> models.WholeRejectedRecord:
        """Returns a record with its key, headers and value."""
        return await self._client._model(models.WholeRejectedRecord, Send("GET", path("rejected", rejected_id)))

    async def redrive(self, rejected_id: Id) -> models.RejectedRecord:
        """Publishes a record again on its topic, once."""
        return await self._client._model(models.RejectedRecord, Send("POST", path("rejected", rejected_id, "redrive")))

    async def discard(self, rejected_id: Id) -> models.RejectedRecord:
        """Deletes a stored record."""
        return await self._client._model(models.RejectedRecord, Send("DELETE", path("rejected", rejected_id)))


class AsyncJobTypes:
    """The job types."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> Sequence[models.JobTypeInfo]:
        """Returns all job types."""
        return (await self._client._model(models.JobTypes, Send("GET", "/api/job-types"))).job_types

    async def get(self, type: str) -> models.JobTypeInfo:
        """Returns a job type with the JSON Schemas of its payload and its output."""
        return await self._client._model(models.JobTypeInfo, Send("GET", path("job-types", type)))

    async def delete(self, type: str) -> None:
        """Forgets a job type that workers have run: further jobs of it are refused until a worker describes it again."""
        await self._client._call(Send("DELETE", path("job-types", type)))


class AsyncWorkers:
    """The workers."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> models.Workers:
        """Returns the workers with the attempts that they run, and the job types whose jobs wait without a worker."""
        return await self._client._model(models.Workers, Send("GET", "/api/workers"))

    async def drain(self, worker_id: str) -> models.WorkerDrain:
        """Drains a worker: it gets no further attempts and finishes those that it runs."""
        return await self._client._model(models.WorkerDrain, Send("PUT", path("workers", worker_id, "drain")))

    async def undrain(self, worker_id: str) -> models.WorkerDrain:
        """Lets a draining worker take attempts again."""
        return await self._client._model(models.WorkerDrain, Send("DELETE", path("workers", worker_id, "drain")))


class AsyncHooks:
    """The hooks: endpoints for the webhooks of other services. HOOKS_FILE defines them."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> Sequence[models.Hook]:
        """Returns all hooks, with what they have accepted and why they last rejected a request."""
        return (await self._client._model(models.Hooks, Send("GET", "/api/hooks"))).hooks


class AsyncKeys:
    """The API keys."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(
        self,
        name: str,
        roles: Sequence[Role],
        *,
        work_types: Sequence[str] | None = None,
        work_queues: Sequence[str] | None = None,
        owner_id: str | None = None,
        expires_at: datetime | None = None,
    ) -> models.NewKey:
        """Creates an API key. Only this answer has the key."""
        body = {
            "name": name,
            "roles": [*roles],
            "workTypes": work_types and [*work_types],
            "workQueues": work_queues and [*work_queues],
            "ownerId": owner_id,
            "expiresAt": expires_at and expires_at.isoformat(),
        }
        return await self._client._model(models.NewKey, Send("POST", "/api/keys", json=body))

    async def get(self, key_id: str) -> models.StoredKey:
        """Returns what is stored of a key, which is not the key itself."""
        return await self._client._model(models.StoredKey, Send("GET", path("keys", key_id)))

    async def list(self, *, owner_id: str | None = None) -> AsyncIterator[models.StoredKey]:
        """Yields the keys, also revoked ones, page by page."""
        async for page in self._client._pages(models.KeyPage, "/api/keys", query({"ownerId": owner_id})):
            for key in page.keys:
                yield key

    async def revoke(self, key_id: str) -> models.StoredKey:
        """Revokes a key: within 10 s every gateway refuses it."""
        return await self._client._model(models.StoredKey, Send("DELETE", path("keys", key_id)))

    async def rotate(self, key_id: str, *, overlap_seconds: int = 86_400) -> models.NewKey:
        """Replaces a key by a new one with the same rights. The old one expires after overlap_seconds."""
        send = Send("POST", path("keys", key_id, "rotate"), json={"overlapSeconds": overlap_seconds})
        return await self._client._model(models.NewKey, send)


class AsyncAudit:
    """The audit log."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(
        self,
        *,
        owner_id: str | None = None,
        job_id: Id | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[models.AuditEntry]:
        """Yields the entries that match, newest first, page by page."""
        about = {"ownerId": owner_id, "jobId": job_id, "actor": actor, "action": action}
        async for page in self._client._pages(models.AuditPage, "/api/audit", query(about | {"since": since, "until": until})):
            for entry in page.entries:
                yield entry


class AsyncInstallation:
    """The installation as a whole."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def me(self) -> models.Me:
        """Returns the owner, the actor and the roles of this client's key."""
        return await self._client._model(models.Me, Send("GET", "/api/me"))

    async def owners(self, *, q: str | None = None) -> Sequence[str]:
        """Returns the names of at most 200 owners; q is a part of the name."""
        return (await self._client._model(models.Owners, Send("GET", "/api/owners", query({"q": q, "limit": 200})))).owners

    async def stats(self, *, queue: str | None = None, type: str | None = None) -> models.Stats:
        """Returns how many jobs there are, how many end, and how long they take; also of one queue or job type."""
        return await self._client._model(models.Stats, Send("GET", "/api/stats", query({"queue": queue, "type": type})))

    async def lag(self) -> models.Lag:
        """Returns how far functions lag behind their topics."""
        return await self._client._model(models.Lag, Send("GET", "/api/lag"))

    async def health(self) -> models.Health:
        return await self._client._model(models.Health, Send("GET", "/api/health"))

    async def webhook_secrets(self, *, owner_id: str | None = None) -> models.WebhookSecrets:
        """Returns the keys by which receivers verify the messages of JobWeaver, your own or those of an owner."""
        return await self._client._model(models.WebhookSecrets, Send("GET", "/api/webhook-secrets", query({"ownerId": owner_id})))
