# Made of functions/gateway/openapi.yaml by `make generate-clients`. Do not edit.
# mypy: ignore-errors

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field, RootModel, StringConstraints


class Wait(RootModel[str]):
    root: Annotated[
        str,
        Field(
            description="Up to a minute, as 30s, 1.5s or 500ms; in seconds without a unit.",
            pattern="^(([1-5]?[0-9]([.][0-9]{1,9})?|60)s?|([1-5]?[0-9]{1,4}|60000)ms|1m(0s)?)$",
        ),
    ]


class WorkToken(RootModel[str]):
    root: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]


class Callback(BaseModel):
    """
    The secret with which an outside system ends an attempt that was settled as WAITING; null if no outside system can.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    url: str
    secret: str


class Progress(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    percent: Annotated[int, Field(ge=0, le=100)]
    message: Annotated[str | None, Field(max_length=1000)] = None


class LogItem(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    level: Literal["debug", "info", "warn", "error"] | None = "info"
    text: Annotated[str, Field(max_length=16384)]


class Log(RootModel[list[LogItem]]):
    root: Annotated[list[LogItem], Field(max_length=200)]


class Attempt(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    progress: Progress | None = None
    log: Log | None = None


class WorkHeartbeat(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    attempts: Annotated[list[Attempt] | None, Field(max_length=500)] = None


class WorkHeartbeatAnswer(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    cancelled: list[WorkToken]
    lost: list[WorkToken]


class WorkCheckpoints(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    checkpoints: Annotated[
        list[Any],
        Field(
            description="An invalid checkpoint gets a 400 at its index, one that is too large a 413.", max_length=500, min_length=1
        ),
    ]


class WorkCheckpoint(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    number: Annotated[
        int,
        Field(description="Rises with each checkpoint of the attempt. One that arrives late changes nothing.", ge=1, le=2147483647),
    ]
    checkpoint: Annotated[Any, Field(description="Any JSON of at most 64 KiB; null is none.")]


class EventWait(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Annotated[str, Field(max_length=255, min_length=1)]
    source: Annotated[str | None, Field(max_length=4096, min_length=1)] = None
    subject: Annotated[str | None, Field(max_length=4096, min_length=1)] = None
    match: Annotated[
        dict[str, Any] | None,
        Field(
            description="Members that the data must have, by their paths (order.id), with their values: texts, numbers, booleans or\nnull. Of an event 500 members are compared, to a depth of 8, and none in an array.\n"
        ),
    ] = None


class Scalar(RootModel[str | float | bool | None]):
    root: str | float | bool | None


class ReceivedEvent(BaseModel):
    """
    The event with its attributes and its data, as in CloudEvents' JSON format.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: str
    source: str
    type: str
    time: AwareDatetime | None = None
    subject: str | None = None
    data: Any | None = None


class EventKept(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    event_id: Annotated[str, Field(alias="eventId", description="The id of the event.")]
    jobs: Annotated[int, Field(description="The jobs whose handlers waited for it.", ge=0)]


class EventsKept(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    events: list[EventKept]


class WorkStepsRead(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    after: Annotated[
        str | None,
        Field(description="The next of the page before; null or absent for the first page.", max_length=200, min_length=1),
    ] = None


class WorkSettle(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    results: Annotated[list[Any], Field(description="An invalid result gets a 400 at its index.", max_length=500, min_length=1)]


class WorkResult(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    status: Literal["COMPLETED", "FAILED", "SNOOZED", "WAITING"]
    output: Annotated[Any | None, Field(description="For COMPLETED: any JSON of at most 256 KiB.")] = None
    error_code: Annotated[
        str | None,
        Field(
            alias="errorCode", description="For FAILED; if absent, WORKER.HANDLER_FAILED.", pattern="^[A-Za-z][A-Za-z0-9._-]{0,63}$"
        ),
    ] = None
    message: Annotated[str | None, Field(description="For FAILED.", max_length=4096)] = None
    retryable: Annotated[bool | None, Field(description="For FAILED.")] = True
    retry_after_ms: Annotated[
        int | None, Field(alias="retryAfterMs", description="For FAILED; if absent, the retryPolicy decides.", ge=1, le=2592000000)
    ] = None
    delay_ms: Annotated[
        int | None,
        Field(
            alias="delayMs", description="Required for SNOOZED: when the job runs again. It costs no retry.", ge=1, le=2592000000
        ),
    ] = None
    callback_timeout_ms: Annotated[
        int | None, Field(alias="callbackTimeoutMs", description="Required for WAITING.", ge=1, le=2592000000)
    ] = None


class Detail(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    path: str
    message: str


class Error(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    error_code: Annotated[str, Field(alias="errorCode")]
    message: str
    details: list[Detail]


class Result(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    token: str
    status: Literal[200, 400, 409, 413, 503]
    error: Error | None = None


class WorkSettled(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    results: list[Result]


class Rotation(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    overlap_seconds: Annotated[int | None, Field(alias="overlapSeconds", ge=0, le=2592000)] = 86400


class WebhookSecrets(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    owner_id: Annotated[str | None, Field(alias="ownerId", description="The owner of the keys; null for jobs without an owner.")]
    end: Annotated[list[str], Field(description="The keys that verify messages about the ends of jobs, at a callbackUrl.")]
    call: Annotated[list[str], Field(description="The keys that verify the requests of EXTERNAL and FUNCTION jobs.")]


class Me(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    actor: Annotated[str, Field(description="key:<keyId>, oidc:<subject>, or anonymous if authentication is off.")]
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId", description="The owner whose jobs and settings the request can reach; null for the installation's own."
        ),
    ]
    roles: list[Literal["submit", "read", "operate", "work", "admin"]]
    installation: Annotated[bool, Field(description="Whether the request has the rights of an admin of the installation.")]
    trace_url: Annotated[
        str | None,
        Field(
            alias="traceUrl",
            description="The address of a trace in the installation's trace UI, with {traceId} for the 32 hexadecimal digits of a trace id; null if TRACE_URL is not set.",
        ),
    ]
    sealing: Annotated[bool, Field(description="Whether a keyset seals payloads, so that no filter can look into them.")]


class OidcLogin(BaseModel):
    """
    What a page needs for the authorization code flow with PKCE (S256), with the path /login as its redirect URL.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    issuer: AnyUrl
    client_id: Annotated[str, Field(alias="clientId")]
    authorization_endpoint: Annotated[AnyUrl, Field(alias="authorizationEndpoint")]
    token_endpoint: Annotated[AnyUrl, Field(alias="tokenEndpoint")]
    scopes: list[str]
    token: Annotated[
        Literal["access_token", "id_token"],
        Field(description="The token that this API accepts; id_token if OIDC_AUDIENCE is the client id."),
    ]


class JobType(RootModel[str]):
    root: Annotated[
        str,
        Field(
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]


class Queue(RootModel[str]):
    root: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ] = "default"


class Dependency1(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    on: Annotated[
        Literal["completed", "ended", "failed"] | None,
        Field(
            description="How the other job has to end: COMPLETED, in whatever way, or FAILED or CANCELLED. A job that has a dependency that ends otherwise is CANCELLED."
        ),
    ] = None


class Tag(RootModel[str]):
    root: Annotated[
        str, Field(description="No control characters.", max_length=64, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]


class Key(RootModel[str]):
    root: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]


class Unique(BaseModel):
    """
    The request is answered with the owner's newest job that had the same unique key, if there is one that was accepted within for and is still in the state of while.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    for_: Annotated[
        str | None,
        Field(
            alias="for",
            description="A duration such as 90s or 24h, from 1s to 8760h. The default is any time while the job is kept.",
            examples=["24h"],
            max_length=255,
            min_length=2,
        ),
    ] = None
    while_: Annotated[
        Literal["WAITING", "ACTIVE"] | None,
        Field(
            alias="while",
            description="WAITING: only a job that has not started counts; ACTIVE: only one that has not ended. The default is ACTIVE without for, and any state with it.",
        ),
    ] = None


class Throttle(BaseModel):
    """
    The owner's jobs with the same throttle key are due at least perMs apart, in the order in which they are accepted; the job's runAt shows when. It goes with neither runAt nor delayMs.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    per_ms: Annotated[int, Field(alias="perMs", ge=1, le=86400000)]


class Singleton(BaseModel):
    """
    The owner's jobs with the same singleton key run one at a time. If one of them has not ended, a request with else drop is answered with that job, and one with else queue becomes a job that waits for its turn. It does not go with orderingKey.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    else_: Annotated[Literal["queue", "drop"] | None, Field(alias="else")] = "queue"


class Debounce(BaseModel):
    """
    The first request with a debounce key becomes a job that is held: it is SCHEDULED, and its runAt is delayMs from now. Until then, a further request of the owner with the key is answered with 202, the id of that job and decidedBy debounce. It replaces all that the job is to do, and its delayMs counts anew; but the job is held no longer than maxDelayMs after the first request. A command makes the job ready for the scheduler at once: it is held no longer. A request that changes a held job must have the same orderingKey or singleton. debounce goes with none of runAt, delayMs, unique, throttle, batchId and after, and not with a schedule.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    delay_ms: Annotated[int, Field(alias="delayMs", ge=1, le=86400000)]
    max_delay_ms: Annotated[
        int | None,
        Field(
            alias="maxDelayMs",
            description="Not less than delayMs. The default is ten times delayMs, at most a day.",
            ge=1,
            le=86400000,
        ),
    ] = None


class Tick(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    outcome: Literal["fired", "skipped"]
    reason: Annotated[str | None, Field(description="Why the tick was skipped; manual: a request ran the schedule.")]
    job_id: Annotated[UUID | None, Field(alias="jobId")]
    recorded_at: Annotated[AwareDatetime, Field(alias="recordedAt")]


class EmailItem(RootModel[str]):
    root: Annotated[str, Field(max_length=1000)]


class Destination(BaseModel):
    """
    Where notices go, each by a job of type ALERT. Responses show URLs without their path, which may be a secret.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    webhook: Annotated[
        str | None,
        Field(description="A URL, which gets the notice as a CloudEvent, signed as a call of FUNCTION is.", max_length=2000),
    ] = None
    slack: Annotated[
        str | None,
        Field(description='The URL of an incoming webhook of Slack, or of a system that takes {"text"}.', max_length=2000),
    ] = None
    email: Annotated[list[EmailItem] | None, Field(description="Mail addresses.", max_length=20, min_length=1)] = None


class Notice(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    notice_id: Annotated[UUID, Field(alias="noticeId", description="The id of the CloudEvent that a webhook gets.")]
    at: AwareDatetime
    state: Literal["FIRING", "RESOLVED", "TEST"]
    failed: Annotated[int, Field(ge=0)]
    ended: Annotated[int, Field(ge=0)]
    job_id: Annotated[UUID, Field(alias="jobId", description="The job that sends it.")]


class CommandAccepted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    command: Annotated[int, Field(description="The number of the command; each job has its own count.", ge=1)]


class JobId(RootModel[str]):
    root: Annotated[str, Field(pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]


class OperationFilter(BaseModel):
    """
    A job must match all members. There is at least one, or `all` is true.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    all: Annotated[Literal[True] | None, Field(description="All jobs; it cannot be combined with other members.")] = None
    status: Annotated[
        list[Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]] | None,
        Field(description="One of these; without it, every state that allows the command.", min_length=1),
    ] = None
    type: Annotated[
        str | None,
        Field(
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ] = None
    queue: Annotated[str | None, Field(pattern="^[a-z0-9-]{1,63}$")] = None
    tag: Annotated[
        str | None, Field(description="No control characters.", max_length=64, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ] = None
    since: Annotated[AwareDatetime | None, Field(description="Accepted at this instant or later, by createdAt.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Accepted before this instant, by createdAt.")] = None
    ended_since: Annotated[
        AwareDatetime | None, Field(alias="endedSince", description="Ended at this instant or later, by finishedAt.")
    ] = None
    ended_until: Annotated[
        AwareDatetime | None, Field(alias="endedUntil", description="Ended before this instant, by finishedAt.")
    ] = None
    ordering_key: Annotated[
        str | None,
        Field(
            alias="orderingKey",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    error_code: Annotated[
        str | None,
        Field(
            alias="errorCode",
            description="The error code of the last failure.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    no_error_code: Annotated[
        Literal[True] | None,
        Field(
            alias="noErrorCode",
            description="The last failure has no error code, or there was no failure. It cannot be combined with errorCode.",
        ),
    ] = None
    payload: Annotated[
        str | None,
        Field(
            description="A path in the payload, a colon, and the value there: a text as it is, a number of any notation, or true, false or null. A name with one of . [ : is quoted, as in ['full name.2']. A keyset seals payloads: then it is a 400.",
            max_length=255,
            min_length=3,
            pattern="^[^:]+:.+$",
        ),
    ] = None
    trace_id: Annotated[str | None, Field(alias="traceId", pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")] = None
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    after: Annotated[
        str | None,
        Field(
            description="Jobs that name this job in their own after.",
            pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        ),
    ] = None
    batch_id: Annotated[
        str | None,
        Field(alias="batchId", description="Jobs of this batch.", pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    ] = None
    fan_out_id: Annotated[
        str | None,
        Field(
            alias="fanOutId",
            description="Jobs of the elements of this fan-out.",
            pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        ),
    ] = None
    q: Annotated[
        str | None,
        Field(
            description="The same as q of a list, which shows beforehand what it finds. Whether the text is searched as a name or in tags and messages is decided once, when the operation is accepted. The operation goes through all jobs, however long that takes.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None


class BatchState(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    batch_id: Annotated[UUID, Field(alias="batchId")]
    status: Annotated[
        Literal["OPEN", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"],
        Field(
            description="OPEN: jobs can join. RUNNING: it is closed and has not ended. COMPLETED: all of its jobs have completed, or there were none. EXPIRED: it had not ended by its expiresAt. Otherwise FAILED if a job has failed, and CANCELLED if not."
        ),
    ]


class BatchOperation(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    batch_id: Annotated[UUID, Field(alias="batchId")]
    operation_id: Annotated[UUID, Field(alias="operationId")]


class FlowName(RootModel[str]):
    root: Annotated[str, Field(description="The name of a job in its flow.", pattern="^[A-Za-z0-9_-]{1,64}$")]


class After(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="The name of a job in its flow.", pattern="^[A-Za-z0-9_-]{1,64}$")]
    on: Annotated[
        Literal["completed", "ended", "failed"] | None,
        Field(
            description="How the other job has to end: COMPLETED, in whatever way, or FAILED or CANCELLED. A job that has a dependency that ends otherwise is CANCELLED."
        ),
    ] = None


class After1(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId", description="A job that was accepted before.")]
    on: Annotated[
        Literal["completed", "ended", "failed"] | None,
        Field(
            description="How the other job has to end: COMPLETED, in whatever way, or FAILED or CANCELLED. A job that has a dependency that ends otherwise is CANCELLED."
        ),
    ] = None


class ForEach(BaseModel):
    """
    The array in the output of a job in after, by its path there, for each element of which there will be a job. In the payload, {"$item": "value", "path": "$.a", "default": null} stands for the element or a part of it, and {"$item": "index"} for its index, from 0 on. The fan-out itself is a job that no worker runs: it ends when these jobs have ended, and its output is the array of theirs.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_output: Annotated[
        str, Field(alias="$output", description="The name of a job in its flow.", pattern="^[A-Za-z0-9_-]{1,64}$")
    ]
    path: Annotated[str | None, Field(description="As in a reference. Without it the output is the array.")] = None


class Element(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    fan_out_id: Annotated[UUID, Field(alias="fanOutId")]
    index: Annotated[int, Field(ge=0, le=9999)]


class MadeFlow(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    flow_id: Annotated[UUID, Field(alias="flowId")]
    jobs: Annotated[dict[str, UUID], Field(description="The ids of the jobs by their names.")]


class FlowRetry(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    flow_id: Annotated[UUID, Field(alias="flowId")]
    jobs: Annotated[
        int,
        Field(
            description="How many jobs have failed or were cancelled, of which one whose conditions are not met stays as it is; with from or all, how many new jobs there are.",
            ge=1,
        ),
    ]


class FlowRetryRequest(BaseModel):
    """
    What runs again. Without any of these, the jobs that have failed or were cancelled do.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    from_: Annotated[
        list[FlowName] | None,
        Field(
            alias="from",
            description="The jobs with these names and all that come after them become new jobs. Not with all.",
            max_length=10000,
            min_length=1,
        ),
    ] = None
    all: Annotated[bool | None, Field(description="All jobs of the flow become new ones.")] = None


class FlowOperation(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    flow_id: Annotated[UUID, Field(alias="flowId")]
    operation_id: Annotated[UUID, Field(alias="operationId")]


class FlowEdge(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str | None, Field(description="Absent if the job is not of the flow.", pattern="^[A-Za-z0-9_-]{1,64}$")] = None
    job_id: Annotated[UUID, Field(alias="jobId")]
    on: Annotated[
        Literal["completed", "ended", "failed"],
        Field(
            description="How the other job has to end: COMPLETED, in whatever way, or FAILED or CANCELLED. A job that has a dependency that ends otherwise is CANCELLED."
        ),
    ]


class Hour(RootModel[int]):
    root: Annotated[int, Field(ge=0)]


class DeadExampleOrNull(BaseModel):
    """
    The job that failed last. If it was retried or deleted since, another job of the group; null if the search for one would take too long.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    message: str


class ProgressOrNull(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    percent: Annotated[int, Field(ge=0, le=100)]
    message: str | None


class LogLine(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    attempt: Annotated[int, Field(ge=1)]
    at: AwareDatetime
    level: str
    text: str


class Delivery(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: Annotated[str, Field(description="The id of the CloudEvent, and the webhook-id; the same at each try.")]
    job_id: Annotated[UUID, Field(alias="jobId")]
    version: Annotated[int, Field(description="The version of the job when it ended.", ge=1)]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    job_status: Annotated[
        Literal["COMPLETED", "FAILED", "CANCELLED"], Field(alias="jobStatus", description="The terminal state of the job.")
    ]
    url: str
    status: Annotated[
        Literal["PENDING", "DELIVERED", "FAILED"],
        Field(description="FAILED after the last try, after a 410, or if the address may not be called."),
    ]
    tries: Annotated[int, Field(ge=0)]
    next_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="nextAt",
            description="Of a PENDING delivery, when it is tried next; during a try, when the next one is at the latest.",
        ),
    ]
    last_try_at: Annotated[AwareDatetime | None, Field(alias="lastTryAt")]
    last_answer: Annotated[
        int | None, Field(alias="lastAnswer", description="The HTTP status of the last response; null if there was none.")
    ]
    last_error: Annotated[str | None, Field(alias="lastError")]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]


class RejectedFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: UUID
    function: Annotated[str, Field(description="The function that rejected the record.", examples=["ingest"])]
    topic: Annotated[str, Field(examples=["job-created"])]
    partition: Annotated[int | None, Field(description="Null, like offset, for a record that arrived over HTTP.")]
    offset: int | None
    reason: Annotated[str, Field(description="undecodable, unsigned, invalid or panic, with the details.")]
    bytes: Annotated[int, Field(description="The size of key, headers and value.")]
    truncated: Annotated[bool, Field(description="Key, headers or value were too large and have been truncated.")]
    trace_id: Annotated[UUID | None, Field(alias="traceId")]
    recorded_at: Annotated[AwareDatetime | None, Field(alias="recordedAt")]
    rejected_at: Annotated[AwareDatetime, Field(alias="rejectedAt")]
    redrive_refusal: Annotated[
        str | None, Field(alias="redriveRefusal", description="Why the record cannot be redriven; null if it can.")
    ]
    redriven_at: Annotated[AwareDatetime | None, Field(alias="redrivenAt")]
    redriven_by: Annotated[str | None, Field(alias="redrivenBy", description="The key or token that redrove the record.")]


class RejectedRecord(RejectedFields):
    """
    A record that a function could not use.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class RecordBytesOrNull(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    encoding: Literal["text", "base64"]
    data: str


class RejectedPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    rejected: Annotated[list[RejectedRecord], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class AuditEntry(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: Annotated[str, Field(description="The number of the entry.")]
    at: AwareDatetime
    owner_id: Annotated[
        str | None,
        Field(alias="ownerId", description="The owner whose jobs or settings were changed; null for the installation's own."),
    ]
    actor: Annotated[
        str, Field(description="key:<id> or oidc:<subject>; bootstrap for jobweaver keys bootstrap and BOOTSTRAP_API_KEY.")
    ]
    action: Annotated[str, Field(examples=["job.submit", "job.cancel", "schedule.put", "control.pause", "key.create", "job.read"])]
    resource: Annotated[str | None, Field(description="The changed resource if it is not a job.", examples=["schedule/nightly"])]
    job_ids: Annotated[list[UUID], Field(alias="jobIds")]
    remote_addr: Annotated[str, Field(alias="remoteAddr")]
    user_agent: Annotated[str | None, Field(alias="userAgent", description="The first 200 bytes of the header.")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    details: Annotated[dict[str, Any] | None, Field(description="Other parts of the request; never a payload.")]


class ControlRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    paused: bool | None = False
    max_running: Annotated[
        int | None,
        Field(alias="maxRunning", description="How many attempts may run at once; 0: none; null: any number.", ge=0, le=1000000),
    ] = None
    starts_per_second: Annotated[
        float | None,
        Field(
            alias="startsPerSecond",
            description="How many attempts may start in a second; 0.1: one in ten seconds; null: any number.",
            ge=1e-05,
            le=100000.0,
        ),
    ] = None
    weight: Annotated[int | None, Field(description="Only for the kind fairnessKey, and not for its name *.", ge=1, le=100)] = None


class QueueInfo(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queue: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ]
    origin: Annotated[Literal["setting", "created"], Field(description="Whether the setting QUEUES names it or it was created.")]
    state: Annotated[Literal["ACTIVE", "REMOVING"], Field(description="A queue that is REMOVING takes no new jobs.")]
    workers: Annotated[
        Literal["runjob", "pull"] | None, Field(description="Null: a queue of the setting QUEUES; the setting PULL_QUEUES decides.")
    ]
    live_workers: Annotated[int, Field(alias="liveWorkers", description="Workers that serve it and do not stop.", ge=0)]
    waiting: Annotated[int, Field(description="Jobs that are SCHEDULED, PENDING or RETRYING.", ge=0)]
    running: Annotated[int, Field(description="Jobs that are QUEUED, RUNNING or WAITING.", ge=0)]
    paused: Annotated[bool, Field(description="A control of the queue or of each queue pauses it.")]
    created_at: Annotated[AwareDatetime | None, Field(alias="createdAt")]
    created_by: Annotated[str | None, Field(alias="createdBy", description="Only the installation sees it.")]
    removing_at: Annotated[AwareDatetime | None, Field(alias="removingAt", description="When the removal began.")]


class QueueList(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queues: list[QueueInfo]


class Control(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    kind: Literal["queue", "type", "owner", "fairnessKey"]
    name: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    paused: Annotated[bool, Field(description="No attempts start.")]
    max_running: Annotated[
        int | None,
        Field(alias="maxRunning", description="How many attempts may run at once; 0: none; null: any number.", ge=0, le=1000000),
    ]
    starts_per_second: Annotated[
        float | None,
        Field(
            alias="startsPerSecond",
            description="How many attempts may start in a second; 0.1: one in ten seconds; null: any number.",
            ge=1e-05,
            le=100000.0,
        ),
    ]
    weight: Annotated[int | None, Field(description="Null: the control is not of one fairness key.", ge=1, le=100)]
    version: Annotated[int, Field(description="Rises with each change; 0 if the control was never set.", ge=0)]
    applied: Annotated[bool, Field(description="Whether the scheduler has applied this version.")]
    updated_at: Annotated[AwareDatetime | None, Field(alias="updatedAt")]
    updated_by: Annotated[str | None, Field(alias="updatedBy")]


class CloudEvent(BaseModel):
    """
    A CloudEvent 1.0 in its JSON format, with any extensions.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    type: Annotated[str, Field(min_length=1)]
    subject: Annotated[str | None, Field(min_length=1)] = None
    time: AwareDatetime | None = None
    datacontenttype: Annotated[str | None, Field(min_length=1)] = None
    dataschema: Annotated[str | None, Field(min_length=1)] = None
    data: Any | None = None
    data_base64: str | None = None


class EventAccepted(BaseModel):
    """
    The answer to one event.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]


class TopicLag(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    function: Annotated[str, Field(description="The name of the consumer group without `jobweaver-`.")]
    topic: str
    records: Annotated[
        int, Field(description="Records that are not yet committed; for the compacted topic job-status, an upper bound.", ge=0)
    ]
    members: Annotated[int, Field(description="How many processes consume the topic for the function.", ge=0)]


class JobCounts(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    scheduled: Annotated[int, Field(alias="SCHEDULED", ge=0)]
    pending: Annotated[int, Field(alias="PENDING", ge=0)]
    queued: Annotated[int, Field(alias="QUEUED", ge=0)]
    running: Annotated[int, Field(alias="RUNNING", ge=0)]
    waiting: Annotated[int, Field(alias="WAITING", ge=0)]
    retrying: Annotated[int, Field(alias="RETRYING", ge=0)]
    completed: Annotated[int, Field(alias="COMPLETED", ge=0)]
    failed: Annotated[int, Field(alias="FAILED", ge=0)]
    cancelled: Annotated[int, Field(alias="CANCELLED", ge=0)]


class Rates(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    accepted: Annotated[float, Field(ge=0.0)]
    completed: Annotated[float, Field(ge=0.0)]
    failed: Annotated[float, Field(ge=0.0)]
    cancelled: Annotated[float, Field(ge=0.0)]


class Flow(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: Annotated[AwareDatetime, Field(description="When the span began.")]
    accepted: Annotated[int, Field(ge=0)]
    completed: Annotated[int, Field(ge=0)]
    failed: Annotated[int, Field(ge=0)]
    cancelled: Annotated[int, Field(ge=0)]


class HistogramBar(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    up_to_ms: Annotated[float, Field(alias="upToMs", gt=0.0)]
    jobs: Annotated[int, Field(ge=0)]


class JobTypeDefinition(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    title: Annotated[str | None, Field(description="What the type does, in a few words.", max_length=200)] = None
    description: Annotated[str | None, Field(max_length=4000)] = None
    schema_: Annotated[
        dict[str, Any] | None,
        Field(
            alias="schema",
            description="The JSON Schema (draft 2020-12) of the payload; at most 64 KiB. It may refer only to itself. One that takes too\nlong to check refuses nothing.\n",
        ),
    ] = None
    output_schema: Annotated[
        dict[str, Any] | None,
        Field(
            alias="outputSchema",
            description="The JSON Schema of the output, for clients and pages; no output is checked. At most 64 KiB.",
        ),
    ] = None


class JobTypeInfo(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    builtin: bool
    title: str | None
    description: str | None
    schema_: Annotated[
        dict[str, Any] | None,
        Field(
            alias="schema",
            description='The JSON Schema (draft 2020-12) of the payload; null if any payload is allowed. A job whose payload does not\nmatch is answered with 400. While the workers of a type advertise several schemas, a payload has to match\none of them, and this is the schema of most workers. The schemas true and false are shown as {} and {"not":\n{}}.\n',
        ),
    ]
    output_schema: Annotated[
        dict[str, Any] | None,
        Field(
            alias="outputSchema",
            description="The JSON Schema of the output of a completed job; null if its workers have sent none.",
        ),
    ]
    workers: Annotated[int, Field(description="How many live workers run it.", ge=0)]
    queues: Annotated[list[str], Field(description="The queues that these workers serve.")]


class Partition(RootModel[int]):
    root: Annotated[int, Field(ge=0)]


class WorkerDrain(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker_id: Annotated[str, Field(alias="workerId", min_length=1)]
    draining: bool
    applied: Annotated[bool, Field(description="The scheduler has applied it.")]


class HookRejection(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    message: str


class Component(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal["UP", "DOWN"]
    reason: Annotated[str | None, Field(description="Why it is DOWN, in a sentence. Left out while it is UP.")] = None


class JobBatch(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: Annotated[list[Any], Field(max_length=1000, min_length=1)]


class LogPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    logs: list[LogLine]
    next_cursor: Annotated[
        str | None, Field(alias="nextCursor", description="The cursor of the page with older lines; null if there is none.")
    ]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None


class StreamEvents(RootModel[str]):
    root: Annotated[
        str,
        Field(
            description="Events in the format of the HTML standard, each with the lines id, event and data. The name of the event determines the schema of its data."
        ),
    ]


class StreamProgress(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=0)]
    percent: Annotated[int, Field(ge=0, le=100)]
    message: str | None


class StreamLog(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    logs: list[LogLine]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None


class StreamReload(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    reason: Annotated[str, Field(description="Why changes were missed. For people.")]


class JobDeliveries(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    deliveries: Annotated[list[Delivery], Field(max_length=200)]


class DeliveryPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    deliveries: Annotated[list[Delivery], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class AuditPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    entries: Annotated[list[AuditEntry], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class CallbackAccepted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1)]


class ControlPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    controls: list[Control]


class Owners(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    owners: list[str]
    more: Annotated[bool, Field(description="Whether other owners follow.")]


class Share(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    fairness_key: Annotated[
        str, Field(alias="fairnessKey", description="Empty for the jobs with neither a fairnessKey nor an owner.")
    ]
    weight: Annotated[int, Field(ge=1, le=100)]
    waiting: Annotated[int, Field(description="Its jobs that are PENDING, also those that are blocked.", ge=0)]
    running: Annotated[int, Field(description="Its jobs that are QUEUED or RUNNING.", ge=0)]
    due_share: Annotated[
        float | None,
        Field(
            alias="dueShare",
            description="The part of the next starts that is due to the key: its weight by the weights of all keys with waiting jobs. 0 if none of its jobs wait or its control lets none start; null for an owner.",
        ),
    ]
    running_share: Annotated[
        float | None,
        Field(
            alias="runningShare",
            description="Its part of what runs; null for an owner. Keys with equal shares of the starts differ in it if the jobs of one take longer.",
        ),
    ]
    paused: Annotated[bool, Field(description="Whether the control of the key lets none start.")]
    max_running: Annotated[
        int | None, Field(alias="maxRunning", description="Of the control of the key, or of fairnessKey/*.", ge=0)
    ]
    starts_per_second: Annotated[float | None, Field(alias="startsPerSecond", description="Likewise.")]


class ScheduleTimes(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    upcoming: Annotated[list[AwareDatetime], Field(max_length=5)]


class AlertTest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]


class NoticePage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    notices: Annotated[list[Notice], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class ScheduleRun(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    decided_by: Annotated[
        Literal["unique", "singleton", "debounce"] | None,
        Field(
            alias="decidedBy",
            description="The policy of the request that found this job, so that no new one was made; debounce: the request has changed the job. Absent for a new job.",
        ),
    ] = None


class TickPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    ticks: Annotated[list[Tick], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class TypeWithoutWorker(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queue: str
    job_type: Annotated[str, Field(alias="jobType")]
    jobs: Annotated[int, Field(ge=1)]


class JobTypes(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_types: Annotated[list[JobTypeInfo], Field(alias="jobTypes")]
    accepts_any: Annotated[bool, Field(alias="acceptsAny", description="Jobs of any other type are accepted, too.")]


class SkippedJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    reason: str


class OperationProgress(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    matched: Annotated[int, Field(description="Jobs that the operation has reached.", ge=0)]
    asked: Annotated[int, Field(description="Jobs that got the command.", ge=0)]
    applied: Annotated[int, Field(description="Jobs for which the command was carried out.", ge=0)]
    refused: Annotated[int, Field(description="Jobs for which the command came too late.", ge=0)]
    skipped: Annotated[int, Field(description="Jobs that were reached but did not get the command.", ge=0)]
    walked: Annotated[bool, Field(description="Whether the operation has reached all of its jobs.")]


class RefusalReason(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    reason: str
    jobs: Annotated[int, Field(ge=1)]


class BatchAccepted(BaseModel):
    """
    The job is stored; 200 if its idempotency key was used before, or if a policy of the request found this job.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal[200, 202]
    job_id: Annotated[UUID, Field(alias="jobId")]
    decided_by: Annotated[
        Literal["unique", "singleton", "debounce"] | None,
        Field(
            alias="decidedBy",
            description="The policy of the request that found this job, so that no new one was made; debounce: the request has changed the job. Absent for a new job.",
        ),
    ] = None


class JobTick(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="Unique among the schedules of an owner.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")]
    at: AwareDatetime


class HistoryEntry(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    from_: Annotated[
        Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"] | None,
        Field(alias="from"),
    ]
    to: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]
    attempt: Annotated[int, Field(ge=0)]
    by: Annotated[str, Field(description="The function that made the transition; for a command, the key or token of the request.")]
    reason: str | None


class AttemptSummary(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    attempt: Annotated[int, Field(ge=1)]
    worker_id: Annotated[
        str | None, Field(alias="workerId", description="The worker that ran it; of a pull worker the name with which it claimed.")
    ]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    outcome: Annotated[
        Literal["completed", "failed", "waiting", "lost", "interrupted", "cancelled", "snoozed"] | None,
        Field(description="Null until it ends."),
    ]
    error_code: Annotated[str | None, Field(alias="errorCode")]
    message: str | None


class LastErrorOrNull(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    error_code: Annotated[str, Field(alias="errorCode")]
    message: str


class Blocker(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    kind: Annotated[
        Literal["dependency", "order", "singleton", "pause", "limit", "worker"],
        Field(description="worker means that no live worker of the queue runs the job type."),
    ]
    id: Annotated[
        str, Field(description="Of the job, the ordering key, the singleton key, the control (`queue:default`) or the job type.")
    ]


class EventJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: Annotated[str, Field(description="The id of the event.")]
    job_id: Annotated[UUID, Field(alias="jobId")]


class TypeStats(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    jobs: JobCounts


class QueueStats(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queue: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ]
    jobs: JobCounts


class OldestWaiting(BaseModel):
    """
    The PENDING or RETRYING job that was accepted first, at asOf.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    age_ms: Annotated[int, Field(alias="ageMs", description="The age at asOf.", ge=0)]


class RatesPerSecond(BaseModel):
    """
    Over the last minute, five minutes and hour.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_1m: Annotated[Rates, Field(alias="1m")]
    field_5m: Annotated[Rates, Field(alias="5m")]
    field_1h: Annotated[Rates, Field(alias="1h")]


class Throughput(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    per_second: Annotated[RatesPerSecond, Field(alias="perSecond")]
    minutes: Annotated[list[Flow], Field(description="The last 60, oldest first; the last one is not over.")]
    hours: Annotated[list[Flow], Field(description="The last 24, likewise.")]
    days: Annotated[list[Flow], Field(description="The last 30 (UTC), likewise.")]


class FailedJobType(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[str, Field(alias="jobType")]
    failed: Annotated[int, Field(ge=1)]
    ended: Annotated[int, Field(description="All jobs of the type that ended.", ge=1)]


class FailedErrorCode(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    error_code: Annotated[
        str | None,
        Field(alias="errorCode", description="Null for failures without a code and for codes too rare to be counted separately."),
    ]
    failed: Annotated[int, Field(ge=1)]


class WorkerAttempt(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1)]
    job_type: Annotated[str | None, Field(alias="jobType", description="Null while the API does not know the job.")]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    tags: list[Tag]
    ran_by: Annotated[str | None, Field(alias="ranBy", description="The pull worker that runs it; null if the worker does.")]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt", description="Null while it waits for a slot.")]
    progress: ProgressOrNull | None


class JobHealthDetailsOrNull(BaseModel):
    """
    Null if the database, which has them, is away, or if the client may not see them. Of more than 5,000 jobs the numbers are those of the last count, as in `total` of `/api/stats`.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_types_without_worker: Annotated[
        int,
        Field(alias="jobTypesWithoutWorker", description="The entries of withoutWorker in `/api/workers`, also above 100.", ge=0),
    ]
    pending_jobs: Annotated[int, Field(alias="pendingJobs", ge=0)]
    dead_jobs: Annotated[int, Field(alias="deadJobs", ge=0)]
    active_threads: Annotated[int, Field(alias="activeThreads", ge=0)]
    pool_size: Annotated[int, Field(alias="poolSize", ge=0)]


class JobHealth(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal["UP", "DOWN"]
    details: JobHealthDetailsOrNull | None


class HealthComponents(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job: JobHealth
    db: Component
    kafka: Component


class Message(RootModel[str]):
    root: Annotated[str, Field(max_length=1000)]


class CallbackPercent(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    percent: Annotated[int, Field(ge=0, le=100)]
    message: Message | None = None


class CallbackCompleted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1, le=2147483647)]
    status: Literal["COMPLETED"]
    output: Annotated[Any | None, Field(description="Any JSON of at most 256 KiB; the job's output.")] = None
    error_code: Annotated[Any | None, Field(alias="errorCode", description="Null, or left out.")] = None
    message: Annotated[Any | None, Field(description="Null, or left out.")] = None
    retryable: Annotated[Any | None, Field(description="Null, or left out.")] = None
    progress: Annotated[Any | None, Field(description="Null, or left out.")] = None


class ErrorCode1(RootModel[str]):
    root: Annotated[str, Field(description="If left out, WORKER.CALLBACK_FAILED.", pattern="^[A-Za-z][A-Za-z0-9._-]{0,63}$")]


class Message1(RootModel[str]):
    root: Annotated[str, Field(max_length=4096)]


class CallbackFailed(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1, le=2147483647)]
    status: Literal["FAILED"]
    error_code: Annotated[ErrorCode1 | None, Field(alias="errorCode", description="If left out, WORKER.CALLBACK_FAILED.")] = None
    message: Message1 | None = None
    retryable: Annotated[bool | None, Field(description="If left out, true.")] = None
    output: Annotated[Any | None, Field(description="Null, or left out.")] = None
    progress: Annotated[Any | None, Field(description="Null, or left out.")] = None


class CallbackProgress(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1, le=2147483647)]
    status: Literal["PROGRESS"]
    progress: CallbackPercent
    output: Annotated[Any | None, Field(description="Null, or left out.")] = None
    error_code: Annotated[Any | None, Field(alias="errorCode", description="Null, or left out.")] = None
    message: Annotated[Any | None, Field(description="Null, or left out.")] = None
    retryable: Annotated[Any | None, Field(description="Null, or left out.")] = None


class DetailModel(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    path: Annotated[str, Field(description="Such as payload.steps[3].durationMs; empty for the whole body.")]
    message: str


class RetryExponential(BaseModel):
    """
    min(baseMs·2ⁿ, capMs) after the n-th failure.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["exponential"]
    base_ms: Annotated[int | None, Field(alias="baseMs", ge=0, le=31536000000)] = 5000
    cap_ms: Annotated[int | None, Field(alias="capMs", ge=0, le=31536000000)] = 300000
    jitter: Annotated[
        float | None, Field(description="The share of each delay that is random. It only makes delays shorter.", ge=0.0, le=1.0)
    ] = 0


class RetryFixed(BaseModel):
    """
    The same delay after each failure.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["fixed"]
    delay_ms: Annotated[int, Field(alias="delayMs", ge=0, le=31536000000)]
    jitter: Annotated[
        float | None, Field(description="The share of each delay that is random. It only makes delays shorter.", ge=0.0, le=1.0)
    ] = 0


class DelaysM(RootModel[int]):
    root: Annotated[int, Field(ge=0, le=31536000000)]


class RetryList(BaseModel):
    """
    One delay after another; the last repeats.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["list"]
    delays_ms: Annotated[list[DelaysM], Field(alias="delaysMs", max_length=100, min_length=1)]
    jitter: Annotated[
        float | None, Field(description="The share of each delay that is random. It only makes delays shorter.", ge=0.0, le=1.0)
    ] = 0


class SleepStep(BaseModel):
    """
    Waits.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["SLEEP"]
    duration_ms: Annotated[int, Field(alias="durationMs", ge=0, le=86400000)]


class LogStep(BaseModel):
    """
    Writes a line to the attempt's log.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["LOG"]
    message: Annotated[str, Field(max_length=4096)]


class ComputeStep(BaseModel):
    """
    Keeps a core busy for this many iterations.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["COMPUTE"]
    iterations: Annotated[int, Field(ge=0, le=10000000000)]


class HttpCallStep(BaseModel):
    """
    Calls the URL, after the latency if there is one, and fails if the response is 400 or above. 404, 408, 409, 429 and 500 or above are retried; after a 429 or 503 with Retry-After, not before that time, and at most a year later.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["HTTP_CALL"]
    url: Annotated[str, Field(description="Absolute, http or https, without credentials.", max_length=2048)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] | None = "GET"
    latency_ms: Annotated[int | None, Field(alias="latencyMs", ge=0, le=86400000)] = None


class HttpLatencyStep(BaseModel):
    """
    Waits as long as such a call would take, without making it.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["HTTP_CALL"]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] | None = "GET"
    latency_ms: Annotated[int, Field(alias="latencyMs", ge=0, le=86400000)]


class FailStep(BaseModel):
    """
    Fails the attempt.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["FAIL"]
    message: Annotated[str | None, Field(max_length=4096)] = None
    error_code: Annotated[str | None, Field(alias="errorCode", pattern="^[A-Za-z][A-Za-z0-9._-]{0,63}$")] = (
        "WORKER.SIMULATION_FAILED"
    )
    retryable: bool | None = True
    fail_attempts: Annotated[
        int | None, Field(alias="failAttempts", description="How many attempts fail; without it, all of them.", ge=0, le=2147483647)
    ] = None


class AtInstant(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    run_at: Annotated[AwareDatetime, Field(alias="runAt", description="An instant in the past means now. At most ten years ahead.")]


class AfterDelay(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    delay_ms: Annotated[int, Field(alias="delayMs", description="Milliseconds from now.", ge=0, le=315360000000)]


class WorkTypes(RootModel[list[JobType]]):
    root: Annotated[list[JobType], Field(max_length=100)]


class WorkQueues(RootModel[list[Queue]]):
    root: Annotated[list[Queue], Field(max_length=100)]


class WorkClaim(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    types: Annotated[list[JobType], Field(max_length=100, min_length=1)]
    queues: Annotated[WorkQueues | None, Field(description="Null, absent or empty means any.")] = None
    slots: Annotated[int | None, Field(description="The most attempts that the response may have.", ge=1, le=500)] = 1
    wait: Annotated[str | None, Field(description="A duration from 0s to 1m, such as 30s or 500ms.")] = "30s"


class Parent(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="The name of a job in its flow.", pattern="^[A-Za-z0-9_-]{1,64}$")]
    job_id: Annotated[UUID, Field(alias="jobId")]
    output: Annotated[Any, Field(description="Null if it has none.")]


class WorkAttempt(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1)]
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    queue: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    tags: Annotated[list[str] | None, Field(description="The job's tags; null if they could not be read.")]
    payload: Annotated[Any, Field(description="The job's payload, with the outputs to which it refers.")]
    parents: Annotated[
        list[Parent] | None, Field(description="The jobs of its flow to whose outputs the payload refers, with these outputs.")
    ] = None
    event: Annotated[dict[str, str | int | bool] | None, Field(description="Absent if no CloudEvent submitted the job.")] = None
    checkpoint: Annotated[Any, Field(description="What earlier attempts of the job have saved last; null if nothing.")] = None
    deadline: Annotated[AwareDatetime, Field(description="When timeoutMs ends and the attempt fails.")]
    callback: Annotated[
        Callback | None,
        Field(
            description="The secret with which an outside system ends an attempt that was settled as WAITING; null if no outside system can."
        ),
    ]


class WorkCalledJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]
    output: Annotated[Any, Field(description="Once it is COMPLETED. It is kept with the caller.")]
    last_error: Annotated[LastErrorOrNull | None, Field(alias="lastError")]


class CalledJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    job_type: Annotated[str, Field(alias="jobType")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]


class WorkStep(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    name: Annotated[str, Field(description="By which the step is known in all attempts of the job.", max_length=200, min_length=1)]
    result: Annotated[Any, Field(description="Any JSON of at most 256 KiB; if absent, null.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Of a sleep: when it is over.")] = None
    took_ms: Annotated[
        int | None, Field(alias="tookMs", description="How long the step ran. Null if it was not measured.", ge=0, le=31622400000)
    ] = None


class WorkStepKept(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    result: Annotated[Any, Field(description="What the step returned.")]
    until: Annotated[AwareDatetime | None, Field(description="Of a sleep: when it is over.")]
    attempt: Annotated[int, Field(description="The attempt that saved it.", ge=1)]
    took_ms: Annotated[
        int | None, Field(alias="tookMs", description="How long the step ran. Null if it was not measured.", ge=0, le=31622400000)
    ]
    saved_at: Annotated[AwareDatetime, Field(alias="savedAt")]


class WorkStepPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    steps: list[WorkStepKept]
    next: Annotated[str | None, Field(description="The after with which to read the next page. Null if there is none.")]


class JobStep(BaseModel):
    """
    What a step of the handler returned, or a sleep of it.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    attempt: Annotated[int, Field(description="The attempt that saved it.", ge=1)]
    saved_at: Annotated[AwareDatetime, Field(alias="savedAt")]
    until: Annotated[AwareDatetime | None, Field(description="Of a sleep: when it is over.")]
    took_ms: Annotated[
        int | None, Field(alias="tookMs", description="How long the step ran. Null if it was not measured.", ge=0, le=31622400000)
    ]
    result: Annotated[
        Any,
        Field(
            description="Null, too, for the largest of results that have more than 256 KiB together, and for one that cannot be opened."
        ),
    ]
    bytes: Annotated[int, Field(description="The size of the result as JSON.", ge=1)]


class KeyRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    roles: Annotated[list[Literal["submit", "read", "operate", "work", "admin"]], Field(min_length=1)]
    work_types: Annotated[
        WorkTypes | None,
        Field(
            alias="workTypes",
            description="The job types of which a key with the role work may claim attempts; null, absent or empty means any.",
        ),
    ] = None
    work_queues: Annotated[
        WorkQueues | None,
        Field(
            alias="workQueues",
            description="The queues from which a key with the role work may claim attempts; null, absent or empty means any.",
        ),
    ] = None
    owner_id: Annotated[Key | None, Field(alias="ownerId", description="Null or absent means the owner of the request.")] = None
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="expiresAt",
            description="Null or absent means never or, where the gateway has the setting KEY_MAX_AGE, after that time. A later instant is then refused.",
        ),
    ] = None


class KeyFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key_id: Annotated[str, Field(alias="keyId", pattern="^[a-z2-7]{12}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId", description="The owner of the key; null for the installation's own.")]
    name: str
    roles: list[Literal["submit", "read", "operate", "work", "admin"]]
    work_types: Annotated[
        list[JobType],
        Field(alias="workTypes", description="The job types of which the key may claim attempts; empty means any.", max_length=100),
    ]
    work_queues: Annotated[
        list[Queue],
        Field(alias="workQueues", description="The queues from which the key may claim attempts; empty means any.", max_length=100),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    created_by: Annotated[str, Field(alias="createdBy", description="key:<keyId>, oidc:<subject>, bootstrap or anonymous.")]
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")]
    revoked_at: Annotated[AwareDatetime | None, Field(alias="revokedAt")]
    last_used_at: Annotated[AwareDatetime | None, Field(alias="lastUsedAt", description="To the minute.")]


class StoredKey(KeyFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class NewKey(KeyFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: Annotated[str, Field(pattern="^jw_[a-z2-7]{12}_[0-9A-Za-z]{49}$")]


class KeyPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    keys: list[StoredKey]
    next_cursor: Annotated[str | None, Field(alias="nextCursor")]


class LoginMethods(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    auth: Annotated[Literal["on", "off"], Field(description="If false, no login is needed. If true, an API key always works.")]
    oidc: Annotated[
        OidcLogin | None, Field(description="How to log in at an OpenID Connect issuer; null if OIDC_CLIENT_ID is not set.")
    ]


class RunAgainRequest(BaseModel):
    """
    A JSON Merge Patch of a JobRequest, whose limits apply; null removes a member.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str | None,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ] = None
    payload: Annotated[
        Any | None, Field(description="An object is merged into the old payload; any other JSON but null replaces it.")
    ] = None
    max_retry_count: Annotated[int | None, Field(alias="maxRetryCount", ge=0, le=100)] = None
    retry_policy: Annotated[
        dict[str, Any] | None,
        Field(alias="retryPolicy", description="It is merged into the old policy; one of another type replaces the old policy."),
    ] = None
    queue: Annotated[str | None, Field(max_length=63, min_length=1)] = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt")] = None
    delay_ms: Annotated[int | None, Field(alias="delayMs", ge=0, le=315360000000)] = None
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")] = None
    timeout_ms: Annotated[int | None, Field(alias="timeoutMs", ge=1, le=86400000)] = None
    idempotency_key: Annotated[str | None, Field(alias="idempotencyKey", max_length=255, min_length=1)] = None
    ordering_key: Annotated[str | None, Field(alias="orderingKey", max_length=255, min_length=1)] = None
    fairness_key: Annotated[str | None, Field(alias="fairnessKey", max_length=255, min_length=1)] = None
    keep_build: Annotated[bool | None, Field(alias="keepBuild")] = None
    batch_id: Annotated[UUID | None, Field(alias="batchId")] = None
    after: Annotated[list[Dependency1 | UUID] | None, Field(max_length=10000)] = None
    on_dependency_failure: Annotated[Literal["cancel", "run"] | None, Field(alias="onDependencyFailure")] = None
    tags: Annotated[list[Tag] | None, Field(max_length=16)] = None
    owner_id: Annotated[str | None, Field(alias="ownerId", max_length=255, min_length=1)] = None
    callback_url: Annotated[str | None, Field(alias="callbackUrl", max_length=2000, min_length=1)] = None
    unique: Annotated[dict[str, Any] | None, Field(description="As in a JobRequest.")] = None
    throttle: Annotated[dict[str, Any] | None, Field(description="It is merged into the old one.")] = None
    singleton: Annotated[dict[str, Any] | None, Field(description="It is merged into the old one.")] = None
    debounce: Annotated[dict[str, Any] | None, Field(description="As in a JobRequest.")] = None


class JobChange(BaseModel):
    """
    A JSON Merge Patch of the members of a JobRequest that can be changed, whose limits apply; null restores the default.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    payload: Annotated[
        Any | None, Field(description="An object is merged into the old payload; any other JSON but null replaces it.")
    ] = None
    max_retry_count: Annotated[int | None, Field(alias="maxRetryCount", ge=0, le=100)] = None
    retry_policy: Annotated[
        dict[str, Any] | None,
        Field(alias="retryPolicy", description="It is merged into the old policy; one of another type replaces the old policy."),
    ] = None
    queue: Annotated[str | None, Field(max_length=63, min_length=1)] = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt")] = None
    delay_ms: Annotated[int | None, Field(alias="delayMs", ge=0, le=315360000000)] = None
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")] = None
    timeout_ms: Annotated[int | None, Field(alias="timeoutMs", ge=1, le=86400000)] = None
    tags: Annotated[list[Tag] | None, Field(max_length=16)] = None


class Schedule(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="Unique among the schedules of an owner.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    cron: Annotated[
        str,
        Field(
            description="Five fields (minute, hour, day of month, month, day of week), or six with seconds first, of values, names (MON, JAN), ranges, lists and steps; or @hourly, @daily, @weekly, @monthly, @yearly; or @every with a duration, such as @every 90s, counted from startAt, or else from the creation of the schedule. If both day fields are restricted, a day that matches one of them is enough. When clocks are put forward, a time that does not exist fires at the first instant after the gap; when they are put back, a time that occurs twice fires once. An hour field that covers every hour follows the clock as it is.",
            max_length=255,
        ),
    ]
    time_zone: Annotated[str, Field(alias="timeZone")]
    job: Annotated[
        dict[str, Any] | None,
        Field(
            description="As it was submitted, without its ownerId if that was not the owner of the key. Null if it cannot be shown."
        ),
    ]
    overlap: Annotated[
        Literal["allow", "skip", "cancel"],
        Field(
            description="If a job of the schedule has not ended: start another, skip the tick, or start another and cancel the old one."
        ),
    ]
    missed: Annotated[
        Literal["skip", "one", "all"],
        Field(
            description="Which of the ticks that are more than 30 s late fire: none, the last one, or the last 1,000. Ticks that fell into a pause never fire."
        ),
    ]
    paused: bool
    start_at: Annotated[AwareDatetime | None, Field(alias="startAt")]
    end_at: Annotated[AwareDatetime | None, Field(alias="endAt")]
    next_at: Annotated[
        AwareDatetime | None, Field(alias="nextAt", description="Null while the schedule is paused, and after its last tick.")
    ]
    upcoming: Annotated[list[AwareDatetime], Field(max_length=5)]
    last_at: Annotated[AwareDatetime | None, Field(alias="lastAt", description="The last tick that fired.")]
    last_job_id: Annotated[UUID | None, Field(alias="lastJobId")]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    defined_by: Annotated[
        str | None,
        Field(
            alias="definedBy",
            description="The job type whose workers define the schedule in code. It can be paused and run, but not replaced.",
        ),
    ]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None


class AlertRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str | None, Field(description="Required in a POST; a PUT has it in the path.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")
    ] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="Its owner. Only the installation may name another than its own; without one, the alert is the installation's, and counts the jobs of all owners.",
            max_length=255,
            min_length=1,
        ),
    ] = None
    job_type: Annotated[
        str | None,
        Field(
            alias="jobType",
            description="It counts the jobs of this type; null, of all types but ALERT.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ] = None
    queue: Annotated[
        str | None, Field(description="It counts the jobs of this queue; null, of all.", pattern="^[a-z0-9-]{1,63}$")
    ] = None
    error_code: Annotated[
        str | None,
        Field(
            alias="errorCode",
            description="It counts the failures with this code; null, with any or none.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,63}$",
        ),
    ] = None
    failures: Annotated[
        int | None, Field(description="It fires if as many jobs have failed for good within the window.", ge=1, le=1000000)
    ] = 1
    percent: Annotated[
        int | None, Field(description="And only if they are at least this part of the jobs that completed or failed.", ge=1, le=100)
    ] = None
    window_minutes: Annotated[
        int | None,
        Field(
            alias="windowMinutes",
            description="The length of the window. Jobs are counted by the minute, so it may be up to a minute longer.",
            ge=1,
            le=60,
        ),
    ] = 5
    quiet_minutes: Annotated[
        int | None,
        Field(
            alias="quietMinutes",
            description="The least time between two notices that it fires: while it does, there is one after each such time, and one that begins to fire within it is announced after it.",
            ge=1,
            le=10080,
        ),
    ] = 60
    to: Destination
    paused: bool | None = False


class Alert(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="Unique among the alerts of an owner.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")]
    owner_id: Annotated[
        str | None, Field(alias="ownerId", description="Null: it is the installation's, and counts the jobs of all owners.")
    ]
    job_type: Annotated[str | None, Field(alias="jobType")]
    queue: str | None
    error_code: Annotated[str | None, Field(alias="errorCode")]
    failures: Annotated[int, Field(ge=1)]
    percent: Annotated[int | None, Field(ge=1, le=100)]
    window_minutes: Annotated[int, Field(alias="windowMinutes", ge=1)]
    quiet_minutes: Annotated[int, Field(alias="quietMinutes", ge=1)]
    to: Annotated[Destination | None, Field(description="Null if it cannot be shown.")]
    paused: bool
    state: Literal["OK", "FIRING"]
    firing_since: Annotated[AwareDatetime | None, Field(alias="firingSince")]
    announced_at: Annotated[
        AwareDatetime | None, Field(alias="announcedAt", description="When the last notice that it fires was sent.")
    ]
    failed: Annotated[int, Field(description="The jobs of the window that failed.", ge=0)]
    ended: Annotated[int, Field(description="The jobs of the window that completed or failed.", ge=0)]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None


class Accepted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]
    decided_by: Annotated[
        Literal["unique", "singleton", "debounce"] | None,
        Field(
            alias="decidedBy",
            description="The policy of the request that found this job, so that no new one was made; debounce: the request has changed the job. Absent for a new job.",
        ),
    ] = None


class When(RootModel[AtInstant | AfterDelay]):
    root: Annotated[AtInstant | AfterDelay, Field(description="One of the two.")]


class OperationRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    command: Literal["cancel", "retry", "reschedule", "delete"]
    run_at: Annotated[
        AwareDatetime | None,
        Field(alias="runAt", description="For reschedule. An instant in the past means now. At most ten years ahead."),
    ] = None
    delay_ms: Annotated[
        int | None,
        Field(alias="delayMs", description="For reschedule, instead of runAt, as milliseconds from now.", ge=0, le=315360000000),
    ] = None
    job_ids: Annotated[list[JobId] | None, Field(alias="jobIds", max_length=10000, min_length=1)] = None
    filter: OperationFilter | None = None
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again returns the same operation, or 409 if the rest of the request differs.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None


class OperationFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    operation_id: Annotated[UUID, Field(alias="operationId")]
    command: Literal["cancel", "retry", "reschedule", "delete"]
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt", description="For a reschedule.")]
    filter: OperationFilter | None
    jobs: Annotated[int | None, Field(description="How many jobs are on the list; null for an operation with a filter.")]
    by: Annotated[str, Field(description="The key or token of the request.")]
    status: Annotated[
        Literal["RUNNING", "ABORTING", "ABORTED", "COMPLETED"],
        Field(description="An operation ends when it has reached all of its jobs and all of its commands are confirmed."),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    progress: OperationProgress
    reasons: Annotated[list[RefusalReason], Field(description="Why jobs were skipped or refused, the most frequent reason first.")]


class BatchFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    batch_id: Annotated[UUID, Field(alias="batchId")]
    name: str | None
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    status: Annotated[
        Literal["OPEN", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"],
        Field(
            description="OPEN: jobs can join. RUNNING: it is closed and has not ended. COMPLETED: all of its jobs have completed, or there were none. EXPIRED: it had not ended by its expiresAt. Otherwise FAILED if a job has failed, and CANCELLED if not."
        ),
    ]
    percent: Annotated[
        int | None,
        Field(description="How many of a hundred jobs have ended, rounded down; 100 for a batch that has ended.", ge=0, le=100),
    ]
    total: Annotated[int | None, Field(description="How many jobs it has.", ge=0)]
    counts: Annotated[
        JobCounts | None,
        Field(description="The jobs by state. Those of a batch that has ended are counted as they were at its end."),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    closed_at: Annotated[AwareDatetime | None, Field(alias="closedAt")]
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")]
    expired_at: Annotated[
        AwareDatetime | None,
        Field(alias="expiredAt", description="When it was closed, and its jobs cancelled, because of its expiresAt."),
    ]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt", description="When it ended.")]
    follow_up_job_id: Annotated[
        UUID | None, Field(alias="followUpJobId", description="The job onComplete or onFailure that was submitted at its end.")
    ]
    follow_up_error: Annotated[
        str | None, Field(alias="followUpError", description="Why that job was refused, such as for a queue that no longer exists.")
    ]


class Batch(BatchFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    on_complete: Annotated[
        dict[str, Any] | None, Field(alias="onComplete", description="As it was submitted. Null if it cannot be shown.")
    ]
    on_failure: Annotated[
        dict[str, Any] | None, Field(alias="onFailure", description="As it was submitted. Null if it cannot be shown.")
    ]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None
    is_flow: Annotated[
        bool | None, Field(alias="isFlow", description="Whether it is a flow. Absent if the gateway is of a release without it.")
    ] = None
    idempotency_key: Annotated[str | None, Field(alias="idempotencyKey", description="As requested.")] = None


class BatchSummary(BaseModel):
    """
    What a job onComplete or onFailure gets in place of {"$batch": "summary"}.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    batch_id: Annotated[UUID, Field(alias="batchId")]
    name: str | None
    status: Annotated[
        Literal["OPEN", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"],
        Field(
            description="OPEN: jobs can join. RUNNING: it is closed and has not ended. COMPLETED: all of its jobs have completed, or there were none. EXPIRED: it had not ended by its expiresAt. Otherwise FAILED if a job has failed, and CANCELLED if not."
        ),
    ]
    total: Annotated[int, Field(ge=0)]
    counts: JobCounts
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    closed_at: Annotated[AwareDatetime, Field(alias="closedAt")]
    expired_at: Annotated[AwareDatetime | None, Field(alias="expiredAt")]
    finished_at: Annotated[AwareDatetime, Field(alias="finishedAt")]


class BatchPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    batches: Annotated[list[BatchFields], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class FlowJobRequest(BaseModel):
    """
    A JobRequest, in which after has names of other jobs of the flow.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    payload: Annotated[
        Any,
        Field(
            description='As in a JobRequest. The output of the job a of the flow, or the value at a path in it, replaces each object {"$output": "a", "path": "$.b[0]", "default": null} when the job starts; path and default may be left out. The job a must be in after. The payload is checked by the schema of its type after that.'
        ),
    ]
    max_retry_count: Annotated[
        int | None,
        Field(alias="maxRetryCount", description="The installation may have a different default for a job type.", ge=0, le=100),
    ] = 3
    retry_policy: Annotated[
        RetryExponential | RetryFixed | RetryList | None,
        Field(
            alias="retryPolicy",
            description="When a failed attempt runs again. Without it, the policy that the installation has for the job type applies, or else exponential with its defaults.",
        ),
    ] = None
    queue: Annotated[
        str | None, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ] = "default"
    priority: Annotated[int | None, Field(description="A higher priority goes first.", ge=0, le=9)] = 0
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt")] = None
    delay_ms: Annotated[
        int | None, Field(alias="delayMs", description="Counted from the submit of the flow.", ge=0, le=315360000000)
    ] = 0
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")] = None
    timeout_ms: Annotated[
        int | None,
        Field(
            alias="timeoutMs",
            description="How long one attempt may run, at most 7 days. The installation may have a different default for a job type.",
            ge=1,
            le=604800000,
        ),
    ] = 600000
    ordering_key: Annotated[
        str | None,
        Field(
            alias="orderingKey",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    fairness_key: Annotated[
        str | None,
        Field(
            alias="fairnessKey",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    after: Annotated[list[FlowName | After | After1] | None, Field(max_length=10000)] = None
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None,
        Field(
            alias="onDependencyFailure",
            description="What happens to a job if one of its dependencies ends FAILED or CANCELLED. An entry in after with a condition has its own rule.",
        ),
    ] = "cancel"
    tags: Annotated[list[Tag] | None, Field(max_length=16)] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    callback_url: Annotated[
        str | None,
        Field(
            alias="callbackUrl",
            description="An absolute http or https URL without credentials and fragment, at most 2,000 bytes. When the job has ended, JobWeaver POSTs a CloudEvent of type io.jobweaver.job.status.v1 to it, whose data is the job (JobSummary), signed as in Standard Webhooks, until the response is a 2xx. The tries follow at once, and then 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after each other. A 410 ends the tries.",
            max_length=2000,
            min_length=1,
        ),
    ] = None
    throttle: Throttle | None = None
    singleton: Annotated[Singleton | None, Field(description="Its else must be queue.")] = None
    keep_build: Annotated[bool | None, Field(alias="keepBuild", description="As in a JobRequest.")] = False
    for_each: Annotated[ForEach | None, Field(alias="forEach")] = None


class FlowFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    flow_id: Annotated[UUID, Field(alias="flowId")]
    name: str | None
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    status: Annotated[
        Literal["OPEN", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"],
        Field(description="As of a batch; a flow is never OPEN."),
    ]
    percent: Annotated[
        int | None,
        Field(description="How many of a hundred jobs have ended, rounded down; 100 for a flow that has ended.", ge=0, le=100),
    ]
    total: Annotated[
        int | None, Field(description="How many jobs it has. It grows when a fan-out gets jobs for its elements.", ge=0)
    ]
    counts: Annotated[
        JobCounts | None,
        Field(description="The jobs by state. Those of a batch that has ended are counted as they were at its end."),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")]
    expired_at: Annotated[
        AwareDatetime | None, Field(alias="expiredAt", description="When its jobs were cancelled because of its expiresAt.")
    ]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt", description="When it ended.")]
    follow_up_job_id: Annotated[
        UUID | None, Field(alias="followUpJobId", description="The job onComplete or onFailure that was submitted at its end.")
    ]
    follow_up_error: Annotated[
        str | None, Field(alias="followUpError", description="Why that job was refused, such as for a queue that no longer exists.")
    ]


class FlowRun(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    run: Annotated[int, Field(ge=1)]
    status: Annotated[
        Literal["OPEN", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "EXPIRED"],
        Field(
            description="OPEN: jobs can join. RUNNING: it is closed and has not ended. COMPLETED: all of its jobs have completed, or there were none. EXPIRED: it had not ended by its expiresAt. Otherwise FAILED if a job has failed, and CANCELLED if not."
        ),
    ]
    counts: Annotated[
        JobCounts | None,
        Field(description="The jobs by state. Those of a batch that has ended are counted as they were at its end."),
    ]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt", description="Null if it had not ended.")]
    follow_up_job_id: Annotated[
        UUID | None, Field(alias="followUpJobId", description="The job onComplete or onFailure that followed it.")
    ]


class Elements(BaseModel):
    """
    Of a fan-out, once the array is known.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    total: Annotated[int, Field(description="How many elements there are.", ge=0, le=10000)]
    counts: Annotated[
        JobCounts | None,
        Field(description="The jobs by state. Those of a batch that has ended are counted as they were at its end."),
    ]


class FlowJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    status: Annotated[
        Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"] | None,
        Field(description="Null if the job is deleted."),
    ]
    run_again_of: Annotated[
        UUID | None,
        Field(alias="runAgainOf", description="The job of an earlier run that it has replaced. Absent if there is none."),
    ] = None
    after: Annotated[list[FlowEdge], Field(description="What it waits for.")]
    for_each: Annotated[ForEach | None, Field(alias="forEach")] = None
    elements: Annotated[Elements | None, Field(description="Of a fan-out, once the array is known.")] = None


class FlowPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    flows: Annotated[list[FlowFields], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class DeadGroup(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    error_code: Annotated[str | None, Field(alias="errorCode", description="Null: these failures have no code.")]
    jobs: Annotated[int, Field(description="Jobs that are FAILED now.", ge=1)]
    new: Annotated[bool, Field(description="Whether no job failed in this way in the 30 days before `hoursSince`.")]
    first_failed_at: Annotated[AwareDatetime, Field(alias="firstFailedAt")]
    last_failed_at: Annotated[AwareDatetime, Field(alias="lastFailedAt")]
    hours: Annotated[
        list[Hour],
        Field(
            description="How many jobs failed in each of the last 24 hours of the clock, the current one last.",
            max_length=24,
            min_length=24,
        ),
    ]
    day_before: Annotated[int, Field(alias="dayBefore", description="How many jobs failed in the 24 hours before `hours`.", ge=0)]
    example: DeadExampleOrNull | None


class JobFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    queue: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]
    priority: Annotated[int, Field(description="A higher priority goes first.", ge=0, le=9)]
    attempt: Annotated[int, Field(description="Of the last attempt; 0 before the first.", ge=0)]
    retry_count: Annotated[int, Field(alias="retryCount", description="How many failed attempts were retried.", ge=0)]
    max_retry_count: Annotated[
        int, Field(alias="maxRetryCount", description="The installation may have a different default for a job type.", ge=0, le=100)
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    run_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="runAt",
            description="As requested, also by delayMs; or the start that throttle has reserved for the job, or debounce has set.",
        ),
    ]
    next_run_at: Annotated[AwareDatetime | None, Field(alias="nextRunAt", description="When the next attempt is due.")]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    progress: ProgressOrNull | None
    output: Annotated[Any, Field(description="The output of the handler, any JSON; null if there is none, or none yet.")]
    last_error: Annotated[LastErrorOrNull | None, Field(alias="lastError")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    tags: list[Tag]
    blocked_by: Annotated[
        list[Blocker],
        Field(
            alias="blockedBy",
            description="What a SCHEDULED or PENDING job waits for, beside its time and a worker: dependencies, by job id (at most 20 of them are listed); its turn in the order of its orderingKey or singleton key; or, if PENDING, the pause or the limit of a control, such as queue:default.",
        ),
    ]
    version: Annotated[
        int, Field(description="Rises with the transitions of each transaction of the scheduler; 0: not yet scheduled.", ge=0)
    ]
    callback_deadline_at: Annotated[
        AwareDatetime | None, Field(alias="callbackDeadlineAt", description="Of a WAITING job; otherwise null.")
    ]
    cancel_requested_at: Annotated[
        AwareDatetime | None, Field(alias="cancelRequestedAt", description="While a cancel is not finished; otherwise null.")
    ]
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt", description="As requested.")]
    ordering_key: Annotated[str | None, Field(alias="orderingKey")]
    fairness_key: Annotated[
        str | None,
        Field(
            alias="fairnessKey",
            description="As requested, or else the ownerId; null: the job has neither. Absent: the gateway is of a release without fairness keys.",
        ),
    ] = None
    batch_id: Annotated[UUID | None, Field(alias="batchId", description="The batch that it has joined.")] = None
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None


class RecordHeader(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    value: RecordBytesOrNull | None


class QueueRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    workers: Annotated[
        Literal["runjob", "pull"] | None,
        Field(description="Which workers serve the queue: runjob, also embedded in Go programs, or pull, for pull workers."),
    ] = "runjob"


class EventsAccepted(BaseModel):
    """
    The answer to a batch, in its order.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: list[EventJob]


class Lag(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    topics: list[TopicLag] | None


class Percentiles(BaseModel):
    """
    Accurate to a tenth; null if there were no jobs.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    count: Annotated[int, Field(ge=0)]
    p50_ms: Annotated[float | None, Field(alias="p50Ms")]
    p95_ms: Annotated[float | None, Field(alias="p95Ms")]
    p99_ms: Annotated[float | None, Field(alias="p99Ms")]
    histogram: Annotated[
        list[HistogramBar] | None,
        Field(
            description="Only with queue or type, and if there were jobs: how many took longer than half of upToMs, up to upToMs. Each bar ends at twice the time of the one before."
        ),
    ] = None


class Worker(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker_id: Annotated[str, Field(alias="workerId", description="New at each start.", min_length=1)]
    version: str
    started_at: Annotated[
        AwareDatetime | None, Field(alias="startedAt", description="When its process began; null: its version does not report it.")
    ]
    live: Annotated[bool, Field(description="Seen within the last 10 s.")]
    stopping: Annotated[bool, Field(description="It finishes its attempts and claims no new ones.")]
    draining: Annotated[bool, Field(description="It was ordered to drain. It finishes its attempts and gets no new ones.")]
    drained: Annotated[bool, Field(description="It drains and has no attempts left.")]
    seen_at: Annotated[AwareDatetime, Field(alias="seenAt")]
    queues: list[str]
    job_types: Annotated[list[str], Field(alias="jobTypes")]
    partitions: Annotated[dict[str, list[Partition]], Field(description="By queue.")]
    slots: Annotated[int, Field(description="How many attempts it can run at once.", ge=0)]
    free: Annotated[int | None, Field(description="Null for an owner, because it depends on the jobs of others.", ge=0)]
    busy: Annotated[int | None, Field(description="Null for an owner.", ge=0)]
    rate: Annotated[
        float | None,
        Field(description="How many attempts a second it would finish with all slots busy. Null for an owner.", ge=0.0),
    ]
    attempts: Annotated[
        list[WorkerAttempt],
        Field(
            description="The attempts that it has claimed and not settled, without those claimed in the last 100 ms. For an owner, those of its own jobs."
        ),
    ]


class Hook(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    owner_id: Annotated[str | None, Field(alias="ownerId", description="The owner of the jobs.")]
    signature: Literal["standard-webhooks", "github", "stripe", "slack", "header"]
    job_type: Annotated[str | None, Field(alias="jobType", description="Null if each request decides, or becomes an event.")]
    event_type: Annotated[str | None, Field(alias="eventType", description="Null if each request decides, or becomes a job.")]
    accepted: Annotated[int, Field(description="Requests that became jobs or events.", ge=0)]
    replayed: Annotated[int, Field(description="Requests whose message had arrived before.", ge=0)]
    rejected: Annotated[int, Field(description="Requests that were answered with 400 to 499, for whatever reason.", ge=0)]
    last_rejection: Annotated[HookRejection | None, Field(alias="lastRejection")]


class Health(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal["UP", "DEGRADED", "DOWN"]
    components: HealthComponents


class Callback1(RootModel[CallbackCompleted | CallbackFailed | CallbackProgress]):
    root: Annotated[
        CallbackCompleted | CallbackFailed | CallbackProgress,
        Field(
            description="Members of another status are refused unless they are null, so that a client may send null for members that it does not use."
        ),
    ]


class SharePage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queue: Annotated[
        str, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ]
    at: Annotated[AwareDatetime, Field(description="When the jobs were counted.")]
    complete: Annotated[bool, Field(description="Whether all jobs were counted.")]
    keys: Annotated[int, Field(description="How many keys there are, on all pages and without q.", ge=0)]
    waiting: Annotated[int, Field(description="The jobs of all keys that are PENDING.", ge=0)]
    running: Annotated[int, Field(description="The jobs of all keys that are QUEUED or RUNNING.", ge=0)]
    shares: list[Share]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="The cursor of the next page; null on the last one.")]


class SchedulePage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    schedules: Annotated[list[Schedule], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class AlertPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    alerts: Annotated[list[Alert], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class Workers(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    without_worker: Annotated[
        list[TypeWithoutWorker],
        Field(
            alias="withoutWorker",
            description="The job types of which jobs are PENDING in a queue whose live workers run none of them, those of most jobs first. The jobs are as of `asOf` of `/api/stats`.",
            max_length=100,
        ),
    ]
    workers: list[Worker]


class Failures(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_types: Annotated[
        list[FailedJobType],
        Field(alias="jobTypes", description="The ten job types with the most failed jobs, most failures first."),
    ]
    error_codes: Annotated[
        list[FailedErrorCode],
        Field(
            alias="errorCodes",
            description="The ten error codes with the most failed jobs, most failures first. For each queue and job type, the 20 most frequent codes of a minute, an hour or a day are counted separately.",
        ),
    ]


class WorkAttempts(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    attempts: Annotated[list[WorkAttempt], Field(min_length=1)]


class WorkWaitState(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    status: Annotated[
        Literal["OPEN", "DONE", "TIMED_OUT", "CLOSED"],
        Field(description="CLOSED: the job ended first. If it is retried and asks again, the wait is open again."),
    ]
    until: AwareDatetime | None
    event: Annotated[ReceivedEvent | None, Field(description="Of a wait for an event that is DONE.")] = None
    job: Annotated[WorkCalledJob | None, Field(description="Of a call.")] = None


class JobWait(BaseModel):
    """
    What the handler waits for, or has waited for.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    status: Annotated[
        Literal["OPEN", "DONE", "TIMED_OUT", "CLOSED"],
        Field(description="CLOSED: the job ended first. If it is retried and asks again, the wait is open again."),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    until: AwareDatetime | None
    done_at: Annotated[AwareDatetime | None, Field(alias="doneAt")]
    event: Annotated[EventWait | None, Field(description="What it names of the event. Null if it waits for a job.")]
    received: Annotated[ReceivedEvent | None, Field(description="The event that has come.")]
    job: Annotated[
        CalledJob | None,
        Field(description="The job that the handler has called, which may be deleted by now. Null if it waits for an event."),
    ]


class JobRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="A built-in type, one that workers have run, or one that the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    payload: Annotated[
        Any,
        Field(
            description="Any JSON, nested at most 100 levels deep (the job included), without the character U+0000, with numbers that a double can hold."
        ),
    ]
    max_retry_count: Annotated[
        int | None,
        Field(alias="maxRetryCount", description="The installation may have a different default for a job type.", ge=0, le=100),
    ] = 3
    retry_policy: Annotated[
        RetryExponential | RetryFixed | RetryList | None,
        Field(
            alias="retryPolicy",
            description="When a failed attempt runs again. Without it, the policy that the installation has for the job type applies, or else exponential with its defaults.",
        ),
    ] = None
    queue: Annotated[
        str | None, Field(description="One of the queues that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ] = "default"
    priority: Annotated[int | None, Field(description="A higher priority goes first.", ge=0, le=9)] = 0
    run_at: Annotated[
        AwareDatetime | None,
        Field(alias="runAt", description="Not before this instant; an instant in the past means now. At most ten years ahead."),
    ] = None
    delay_ms: Annotated[
        int | None,
        Field(alias="delayMs", description="Instead of runAt: not before this many milliseconds from now.", ge=0, le=315360000000),
    ] = 0
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="expiresAt",
            description="A job that has not started by then is CANCELLED. It must be later than now and than the time from which the job may run, by at most ten years.",
        ),
    ] = None
    timeout_ms: Annotated[
        int | None,
        Field(
            alias="timeoutMs",
            description="How long one attempt may run, at most 7 days. The installation may have a different default for a job type.",
            ge=1,
            le=604800000,
        ),
    ] = 600000
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again returns the same job, or 409 if the rest of the request differs.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    job_id: Annotated[
        UUID | None,
        Field(
            alias="jobId",
            description="The id for the job, made by the client: a UUID of version 7, at most a day ahead of time. It is also the idempotencyKey, so that the same request again returns the same job; 409 if another job has the id, or a deleted job had it. The job's trace is sampled only if the last bit is set.",
        ),
    ] = None
    ordering_key: Annotated[
        str | None,
        Field(
            alias="orderingKey",
            description="The owner's jobs with the same key run one after another, in the order in which they were accepted. The next starts when the one before has ended, including its retries.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    fairness_key: Annotated[
        str | None,
        Field(
            alias="fairnessKey",
            description="In each queue, the fairness keys of the waiting jobs share the starts by their weights. The default is the ownerId. A key or token of one owner can set no other value than that; else 403.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    keep_build: Annotated[
        bool | None,
        Field(
            alias="keepBuild",
            description="Further attempts run on workers of the build that began the job, as long as one of them is live, runs the job type and does not drain. They wait for such a worker even if others are free.",
        ),
    ] = False
    after: Annotated[
        list[Dependency1 | UUID] | None,
        Field(description="Jobs of the same owner that must end before this one runs, by default COMPLETED.", max_length=10000),
    ] = None
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None,
        Field(
            alias="onDependencyFailure",
            description="What happens to a job if one of its dependencies ends FAILED or CANCELLED. An entry in after with a condition has its own rule.",
        ),
    ] = "cancel"
    tags: Annotated[list[Tag] | None, Field(max_length=16)] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    callback_url: Annotated[
        str | None,
        Field(
            alias="callbackUrl",
            description="An absolute http or https URL without credentials and fragment, at most 2,000 bytes. When the job has ended, JobWeaver POSTs a CloudEvent of type io.jobweaver.job.status.v1 to it, whose data is the job (JobSummary), signed as in Standard Webhooks, until the response is a 2xx. The tries follow at once, and then 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after each other. A 410 ends the tries.",
            max_length=2000,
            min_length=1,
        ),
    ] = None
    batch_id: Annotated[
        UUID | None,
        Field(
            alias="batchId",
            description="The open batch of the same owner that the job joins. Another owner's is a 404, a closed one a 409.",
        ),
    ] = None
    unique: Unique | None = None
    throttle: Throttle | None = None
    singleton: Singleton | None = None
    debounce: Debounce | None = None


class SimulationPayload(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    steps: Annotated[
        list[SleepStep | LogStep | ComputeStep | HttpCallStep | HttpLatencyStep | FailStep], Field(max_length=1000, min_length=1)
    ]


class ScheduledJob(JobRequest):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class OperationPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    operations: Annotated[list[OperationFields], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class Operation(OperationFields):
    """
    An operation, with the jobs that were skipped or refused.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    skipped_jobs: Annotated[
        list[SkippedJob],
        Field(alias="skippedJobs", description="The first 1,000 jobs that were skipped or refused, by id.", max_length=1000),
    ]


class FollowUp(JobRequest):
    """
    The summary of the batch (BatchSummary) replaces each object {"$batch": "summary"} in the payload.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class FlowRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str | None,
        Field(
            description="For people. Two flows may have the same name.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    jobs: Annotated[
        dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")], FlowJobRequest],
        Field(
            description="They belong to the owner of the flow. Together they have at most 100,000 entries in after.",
            max_length=10000,
            min_length=1,
        ),
    ]
    on_complete: Annotated[FollowUp | None, Field(alias="onComplete", description="Submitted when all jobs have COMPLETED.")] = None
    on_failure: Annotated[
        FollowUp | None, Field(alias="onFailure", description="Submitted when the flow is FAILED, CANCELLED or EXPIRED.")
    ] = None
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="expiresAt",
            description="If the flow has not ended by then, those of its jobs that do not run are cancelled. It must be in the future, at most ten years ahead.",
        ),
    ] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again returns the same flow, or 409 if the rest of the request differs.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None


class JobFlow(FlowFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    on_complete: Annotated[
        dict[str, Any] | None, Field(alias="onComplete", description="As it was submitted. Null if it cannot be shown.")
    ]
    on_failure: Annotated[
        dict[str, Any] | None, Field(alias="onFailure", description="As it was submitted. Null if it cannot be shown.")
    ]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent if all members are shown.",
            min_length=1,
        ),
    ] = None
    idempotency_key: Annotated[str | None, Field(alias="idempotencyKey", description="As requested.")] = None
    run: Annotated[int, Field(description="Which run of the flow this is. A retry with from or all begins another one.", ge=1)]
    earlier_runs: Annotated[
        list[FlowRun],
        Field(
            alias="earlierRuns",
            description="How the last runs before this one stood when the next one began, oldest first.",
            max_length=20,
        ),
    ]
    jobs: Annotated[dict[str, FlowJob], Field(description="The graph of the flow, by the names of its jobs.")]


class DeadGroups(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    hours_since: Annotated[AwareDatetime, Field(alias="hoursSince", description="When the first of the hours of each group began.")]
    jobs: Annotated[int, Field(description="The jobs of all groups that match, also of those beyond the limit.", ge=0)]
    total: Annotated[int, Field(description="How many groups match.", ge=0)]
    complete: Annotated[
        bool, Field(description="False if there are more than 5,000 groups. Only the largest are searched then, and counted.")
    ]
    groups: list[DeadGroup]


class JobSummary(JobFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class WholeRejectedRecord(RejectedFields):
    """
    A rejected record with all its details.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: RecordBytesOrNull | None
    headers: list[RecordHeader]
    value: RecordBytesOrNull | None


class Latency(BaseModel):
    """
    Jobs with a later start time count only in run; jobs whose first attempt failed do not count in acceptToStart. run is the duration of the last attempt.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    accept_to_start: Annotated[Percentiles, Field(alias="acceptToStart")]
    run: Percentiles
    accept_to_end: Annotated[Percentiles, Field(alias="acceptToEnd")]


class Hooks(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    hooks: list[Hook]


class Error1(BaseModel):
    """
    For a request that accepts application/problem+json it also has the members of RFC 9457: type (about:blank), title (the phrase of the HTTP status), detail (the message) and instance (the traceId as a URN, urn:uuid:…).
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    timestamp: AwareDatetime
    status: Annotated[int, Field(ge=400, le=599)]
    error_code: Annotated[
        Literal["API.INVALID_JOB_REQUEST", "API.INVALID_EVENT", "API.UNAUTHORIZED", "API.FORBIDDEN", "API.JOB_NOT_FOUND", "API.SCHEDULE_NOT_FOUND", "API.SCHEDULE_EXISTS", "API.ALERT_NOT_FOUND", "API.ALERT_EXISTS", "API.PRECONDITION_FAILED", "API.BATCH_NOT_FOUND", "API.BATCH_CLOSED", "API.FLOW_NOT_FOUND", "API.NOT_FOUND", "API.METHOD_NOT_ALLOWED", "API.IDEMPOTENCY_CONFLICT", "API.JOB_DELETED", "API.INVALID_STATE_TRANSITION", "API.FLOW_COMPENSATED", "API.CALLBACK_EXPIRED", "API.ATTEMPT_OVER", "API.CHECKPOINT_TOO_LARGE", "API.REQUEST_TIMEOUT", "API.PAYLOAD_TOO_LARGE", "API.UNSUPPORTED_MEDIA_TYPE", "API.RATE_LIMITED", "API.INTERNAL", "API.UNAVAILABLE", "API.SEALED"],
        Field(alias="errorCode", description="docs/errors.md explains them."),
    ]
    message: str
    job_id: Annotated[UUID | None, Field(alias="jobId")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    details: list[DetailModel]


class BatchRefused(BaseModel):
    """
    The job is refused.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal[400, 403, 404, 409, 413]
    error: Error1


class JobDetails(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    payload: Annotated[Any, Field(description="As it was submitted.")]
    schedule: Annotated[
        JobTick | None,
        Field(description="The tick of the schedule that made the job; null for a job that was submitted by a request."),
    ]
    event: Annotated[
        dict[str, str | int | bool] | None,
        Field(description="Null if no CloudEvent submitted the job. GET /api/jobs finds the job by eventSource and eventId."),
    ] = None
    callback_url: Annotated[str | None, Field(alias="callbackUrl", description="As requested.")]
    idempotency_key: Annotated[
        str | None, Field(alias="idempotencyKey", description="As requested; the jobId, if the client has given that.")
    ] = None
    retry_policy: Annotated[
        RetryExponential | RetryFixed | RetryList | None,
        Field(
            alias="retryPolicy",
            description="As requested, with all members of its type; or else the one that applied at the submit.",
        ),
    ] = None
    timeout_ms: Annotated[
        int | None,
        Field(alias="timeoutMs", description="As requested, or else the one that applied at the submit.", ge=1, le=604800000),
    ] = 600000
    run_again_of: Annotated[UUID | None, Field(alias="runAgainOf", description="The job that this one runs again; null for most.")]
    run_again_as: Annotated[
        UUID | None, Field(alias="runAgainAs", description="The newest job that runs this one again; null if there is none.")
    ]
    parent_id: Annotated[
        UUID | None, Field(alias="parentId", description="The job whose handler has called this one; null for most.")
    ]
    waits: Annotated[list[JobWait], Field(description="The oldest first.")]
    steps: Annotated[
        list[JobStep],
        Field(description="What the steps of the handler returned, and its sleeps, in the order in which they were saved."),
    ]
    after: Annotated[list[UUID], Field(description="The jobs that must end first.")]
    conditions: Annotated[
        dict[str, Any] | None,
        Field(description="How jobs in after have to end, by their ids. Null if no entry was submitted with a condition."),
    ] = None
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None, Field(alias="onDependencyFailure", description="Null if the job has no dependencies.")
    ]
    keep_build: Annotated[
        bool | None, Field(alias="keepBuild", description="As requested. Absent if the gateway is of a release without it.")
    ] = None
    for_each: Annotated[ForEach | None, Field(alias="forEach", description="As requested. Null if the job is not a fan-out.")] = (
        None
    )
    element: Annotated[
        Element | None, Field(description="The fan-out to which the job belongs, and the index of its element. Null for most.")
    ] = None
    unique: Annotated[Unique | None, Field(description="As requested.")] = None
    throttle: Annotated[Throttle | None, Field(description="As requested.")] = None
    singleton: Annotated[Singleton | None, Field(description="As requested.")] = None
    debounce: Annotated[Debounce | None, Field(description="As requested.")] = None
    held: Annotated[bool | None, Field(description="Whether further requests with its debounce key change the job.")] = None
    history: Annotated[
        list[HistoryEntry],
        Field(
            description="The last 100 transitions, oldest first. Their times are those at which transactions began, so one may be a moment earlier than the one before it."
        ),
    ]
    attempts: Annotated[list[AttemptSummary], Field(description="The attempts in the history, oldest first.")]
    logs: Annotated[
        list[LogLine], Field(description="The last 200 lines of all attempts, oldest first; fewer if they exceed 256 KiB.")
    ]


class DeadPageByNumber(BaseModel):
    """
    The response to a request by page or size.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: Annotated[list[JobSummary], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]
    searched_to: Annotated[
        AwareDatetime | None,
        Field(
            alias="searchedTo",
            description="How far back the request has searched for jobs that match; null if it has filled the page, or reached the oldest job.",
        ),
    ]
    page: Annotated[int, Field(ge=0)]
    size: Annotated[int, Field(ge=1)]
    total_elements: Annotated[
        int | None,
        Field(
            alias="totalElements", description="How many jobs match; null if more than 100,000 dead jobs would have to be searched."
        ),
    ]


class LatencyByWindow(BaseModel):
    """
    For jobs that ended in the last 5 minutes, and in the minutes, hours and days of throughput. Values older than an hour may lag by a minute.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_5m: Annotated[Latency, Field(alias="5m")]
    field_1h: Annotated[Latency, Field(alias="1h")]
    field_24h: Annotated[Latency, Field(alias="24h")]
    field_30d: Annotated[Latency, Field(alias="30d")]


class FailuresByWindow(BaseModel):
    """
    The most frequent failures in the minutes, hours and days of throughput. A job that is retried by hand and fails again is counted twice.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_1h: Annotated[Failures, Field(alias="1h")]
    field_24h: Annotated[Failures, Field(alias="24h")]
    field_30d: Annotated[Failures, Field(alias="30d")]


class WorkWait(BaseModel):
    """
    Either event or job is required.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="By which the wait is known in all attempts of the job.", max_length=200, min_length=1)]
    group: Annotated[
        str | None,
        Field(description="The waits of a group wake their job when all of them are done.", max_length=200, min_length=1),
    ] = None
    timeout_ms: Annotated[
        int | None,
        Field(
            alias="timeoutMs", description="Of an event: after this time the wait is TIMED_OUT. Null: none.", ge=1, le=31622400000
        ),
    ] = None
    event: EventWait | None = None
    job: Annotated[JobRequest | None, Field(description="The job that the handler calls.")] = None


class WorkWaitAnswer(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    delay_ms: Annotated[
        int | None,
        Field(
            alias="delayMs", description="The delayMs with which to settle the attempt as SNOOZED. Null if no wait is open.", ge=1
        ),
    ]
    waits: list[WorkWaitState]


class ScheduleRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str | None, Field(description="Required in a POST; a PUT has it in the path.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")
    ] = None
    cron: Annotated[
        str,
        Field(
            description="Five fields (minute, hour, day of month, month, day of week), or six with seconds first, of values, names (MON, JAN), ranges, lists and steps; or @hourly, @daily, @weekly, @monthly, @yearly; or @every with a duration, such as @every 90s, counted from startAt, or else from the creation of the schedule. If both day fields are restricted, a day that matches one of them is enough. When clocks are put forward, a time that does not exist fires at the first instant after the gap; when they are put back, a time that occurs twice fires once. An hour field that covers every hour follows the clock as it is.",
            max_length=255,
        ),
    ]
    time_zone: Annotated[str | None, Field(alias="timeZone", description="A name of the IANA database, such as Europe/Berlin.")] = (
        "UTC"
    )
    job: ScheduledJob
    overlap: Annotated[
        Literal["allow", "skip", "cancel"] | None,
        Field(
            description="If a job of the schedule has not ended: start another, skip the tick, or start another and cancel the old one."
        ),
    ] = "allow"
    missed: Annotated[
        Literal["skip", "one", "all"] | None,
        Field(
            description="Which of the ticks that are more than 30 s late fire: none, the last one, or the last 1,000. Ticks that fell into a pause never fire."
        ),
    ] = "one"
    paused: bool | None = False
    start_at: Annotated[
        AwareDatetime | None, Field(alias="startAt", description="The schedule does not fire before. At most ten years ahead.")
    ] = None
    end_at: Annotated[AwareDatetime | None, Field(alias="endAt", description="The schedule does not fire after.")] = None


class BatchRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str | None,
        Field(
            description="For people. Two batches may have the same name.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    jobs: Annotated[
        list[JobRequest] | None,
        Field(description="The first jobs, without a batchId. They belong to the owner of the batch.", max_length=1000),
    ] = None
    closed: Annotated[bool | None, Field(description="No other jobs can join.")] = False
    on_complete: Annotated[FollowUp | None, Field(alias="onComplete", description="Submitted when the batch is COMPLETED.")] = None
    on_failure: Annotated[
        FollowUp | None, Field(alias="onFailure", description="Submitted when the batch is FAILED, CANCELLED or EXPIRED.")
    ] = None
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="expiresAt",
            description="If the batch has not ended by then, it is closed, and those of its jobs that do not run are cancelled. It must be in the future, at most ten years ahead.",
        ),
    ] = None
    owner_id: Annotated[
        str | None,
        Field(
            alias="ownerId",
            description="No control characters.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again returns the same batch, or 409 if the rest of the request differs.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None


class Job(JobFields, JobDetails):
    """
    A job with all its details.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class JobPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: Annotated[list[JobSummary], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]
    searched_to: Annotated[
        AwareDatetime | None,
        Field(
            alias="searchedTo",
            description="How far back the request has searched for jobs that match; null if it has filled the page, or reached the oldest job.",
        ),
    ]


class DeadPage(RootModel[JobPage | DeadPageByNumber]):
    root: JobPage | DeadPageByNumber


class Stats(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    as_of: Annotated[
        AwareDatetime | None,
        Field(
            alias="asOf",
            description="When the jobs were counted; null if there are many jobs that have not ended and they are not yet counted.",
        ),
    ]
    jobs: JobCounts
    types: list[TypeStats]
    queues: list[QueueStats]
    oldest_waiting: Annotated[OldestWaiting | None, Field(alias="oldestWaiting")]
    throughput: Throughput
    latency: LatencyByWindow
    failures: FailuresByWindow


class DefinedSchedules(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    schedules: Annotated[
        list[ScheduleRequest],
        Field(description="Each with a name of its own, and a job of the type. None may be paused.", max_length=100),
    ]


class WorkWaits(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str,
        Field(
            description="The name of the pull worker. A process with several pull workers has a name for each.",
            max_length=128,
            min_length=1,
        ),
    ]
    token: Annotated[
        str, Field(description="The secret name of an attempt. Only its pull worker knows it.", max_length=200, min_length=1)
    ]
    waits: Annotated[list[WorkWait], Field(description="A job has at most 1,000.", max_length=100, min_length=1)]


class JobOrAccepted(RootModel[Job | Accepted]):
    root: Annotated[Job | Accepted, Field(description="For a request with wait, the whole job; otherwise the accepted job.")]


class BatchResults(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    results: list[BatchAccepted | BatchRefused]
