# Made of functions/gateway/openapi.yaml by `make generate-clients`. Do not edit.
# mypy: ignore-errors

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field, RootModel


class Wait(RootModel[str]):
    root: Annotated[
        str,
        Field(
            description="Up to a minute, as 30s, 1.5s or 500ms; in seconds without a unit.",
            pattern="^(([1-5]?[0-9]([.][0-9]{1,9})?|60)s?|([1-5]?[0-9]{1,4}|60000)ms|1m(0s)?)$",
        ),
    ]


class WorkToken(RootModel[str]):
    root: Annotated[str, Field(description="Names an attempt to its pull worker only.", max_length=200, min_length=1)]


class Callback(BaseModel):
    """
    With which an outside system ends an attempt that was settled as WAITING; null where none can.
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
    token: Annotated[str, Field(description="Names an attempt to its pull worker only.", max_length=200, min_length=1)]
    progress: Progress | None = None
    log: Log | None = None


class WorkBeat(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str, Field(description="Names the pull worker; a process of several has one name each.", max_length=128, min_length=1)
    ]
    attempts: Annotated[list[Attempt] | None, Field(max_length=500)] = None


class WorkBeaten(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    cancelled: list[WorkToken]
    lost: list[WorkToken]


class WorkSettle(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker: Annotated[
        str, Field(description="Names the pull worker; a process of several has one name each.", max_length=128, min_length=1)
    ]
    results: Annotated[
        list[Any], Field(description="What is wrong with one result is answered in its place.", max_length=500, min_length=1)
    ]


class WorkResult(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    token: Annotated[str, Field(description="Names an attempt to its pull worker only.", max_length=200, min_length=1)]
    status: Literal["COMPLETED", "FAILED", "SNOOZED", "WAITING"]
    output: Annotated[Any | None, Field(description="Of COMPLETED: any JSON of at most 256 KiB.")] = None
    error_code: Annotated[
        str | None, Field(alias="errorCode", description="Of FAILED; absent, WORKER.HANDLER_FAILED.", max_length=100)
    ] = None
    message: Annotated[str | None, Field(description="Of FAILED.", max_length=4096)] = None
    retryable: Annotated[bool | None, Field(description="Of FAILED.")] = True
    retry_after_ms: Annotated[
        int | None, Field(alias="retryAfterMs", description="Of FAILED; absent, as the retryPolicy has it.", ge=1, le=2592000000)
    ] = None
    delay_ms: Annotated[
        int | None,
        Field(
            alias="delayMs", description="Of SNOOZED, which needs it: when it runs again. No retry is counted.", ge=1, le=2592000000
        ),
    ] = None
    callback_timeout_ms: Annotated[
        int | None, Field(alias="callbackTimeoutMs", description="Of WAITING, which needs it.", ge=1, le=2592000000)
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
    status: Literal[200, 400, 409, 503]
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
    owner_id: Annotated[str | None, Field(alias="ownerId", description="Whose keys they are; null: of jobs without an owner.")]
    end: Annotated[list[str], Field(description="They verify the ends of jobs, at a callbackUrl.")]
    call: Annotated[list[str], Field(description="They verify the requests of EXTERNAL and FUNCTION jobs.")]


class Me(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    actor: Annotated[str, Field(description="key:<keyId>, oidc:<subject>, or anonymous where authentication is off.")]
    owner_id: Annotated[str | None, Field(alias="ownerId", description="Whose things are seen; null for the installation's own.")]
    roles: list[Literal["submit", "read", "operate", "work", "admin"]]
    installation: Annotated[bool, Field(description="May all that an admin of the installation may.")]
    trace_url: Annotated[
        str | None,
        Field(
            alias="traceUrl",
            description="The address of a trace in the installation's trace UI, with {traceId} in place of the 32 hexadecimal digits of a trace id; null where TRACE_URL is not set.",
        ),
    ]


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
        Field(description="Which of the tokens this API takes; id_token where OIDC_AUDIENCE is the client id."),
    ]


class JobType(RootModel[str]):
    root: Annotated[
        str, Field(description="SIMULATION, or what the installation lists in JOB_TYPES.", pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$")
    ]


class Queue(RootModel[str]):
    root: Annotated[str, Field(description="One of those that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")] = (
        "default"
    )


class Tag(RootModel[str]):
    root: Annotated[str, Field(max_length=64, min_length=1)]


class Key(RootModel[str]):
    root: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]


class Tick(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    at: AwareDatetime
    outcome: Literal["fired", "skipped"]
    reason: Annotated[str | None, Field(description="Why it was skipped; manual: somebody had it run.")]
    job_id: Annotated[UUID | None, Field(alias="jobId")]
    recorded_at: Annotated[AwareDatetime, Field(alias="recordedAt")]


class Accepted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]


class CommandAccepted(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    command: Annotated[int, Field(description="The command's number; each job counts its own.", ge=1)]


class JobId(RootModel[str]):
    root: Annotated[str, Field(pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")]


class OperationFilter(BaseModel):
    """
    All that it names has to hold. It names something, or says that it means all jobs.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    all: Annotated[Literal[True] | None, Field(description="Alone.")] = None
    status: Annotated[
        list[Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]] | None,
        Field(description="One of these; without it, one that allows the command.", min_length=1),
    ] = None
    type: Annotated[
        str | None,
        Field(description="SIMULATION, or what the installation lists in JOB_TYPES.", pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$"),
    ] = None
    queue: Annotated[str | None, Field(pattern="^[a-z0-9-]{1,63}$")] = None
    tag: Annotated[str | None, Field(max_length=64, min_length=1)] = None
    since: Annotated[AwareDatetime | None, Field(description="Created at this instant or later.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Created before this instant.")] = None
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
            description="Of the last failure.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    no_error_code: Annotated[
        Literal[True] | None,
        Field(alias="noErrorCode", description="Failed without an error code, or not at all. Not together with errorCode."),
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
        Field(description="They name this job in their own after.", pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    ] = None
    q: Annotated[
        str | None,
        Field(
            description="As the q of a list, which shows beforehand what it finds. Whether it is searched as a name or in tags and messages is decided once, when the operation is accepted. It goes through all jobs, however long that takes.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None


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
    id: Annotated[str, Field(description="Of the CloudEvent, and webhook-id: the same at each try.")]
    job_id: Annotated[UUID, Field(alias="jobId")]
    version: Annotated[int, Field(description="The job's when it ended.", ge=1)]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    job_status: Annotated[Literal["COMPLETED", "FAILED", "CANCELLED"], Field(alias="jobStatus", description="As which it ended.")]
    url: str
    status: Annotated[
        Literal["PENDING", "DELIVERED", "FAILED"],
        Field(description="FAILED after the last try, after a 410, or where the address is not allowed to be called."),
    ]
    tries: Annotated[int, Field(ge=0)]
    next_at: Annotated[
        AwareDatetime | None,
        Field(alias="nextAt", description="Of a PENDING one, when it is tried again; while it is being tried, when at the latest."),
    ]
    last_try_at: Annotated[AwareDatetime | None, Field(alias="lastTryAt")]
    last_answer: Annotated[int | None, Field(alias="lastAnswer", description="HTTP status; null: there was none.")]
    last_error: Annotated[str | None, Field(alias="lastError")]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]


class RejectedFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: UUID
    function: Annotated[str, Field(description="Which could not use it.", examples=["ingest"])]
    topic: Annotated[str, Field(examples=["job-created"])]
    partition: Annotated[int | None, Field(description="Null, as offset: it came over HTTP.")]
    offset: int | None
    reason: Annotated[str, Field(description="undecodable, unsigned, invalid or panic, and what exactly.")]
    bytes: Annotated[int, Field(description="Of key, headers and value.")]
    truncated: Annotated[bool, Field(description="Key, headers or value were too large, and are cut.")]
    trace_id: Annotated[UUID | None, Field(alias="traceId")]
    recorded_at: Annotated[AwareDatetime | None, Field(alias="recordedAt")]
    rejected_at: Annotated[AwareDatetime, Field(alias="rejectedAt")]
    redrive_refusal: Annotated[str | None, Field(alias="redriveRefusal", description="Why it is not redriven; null: it can be.")]
    redriven_at: Annotated[AwareDatetime | None, Field(alias="redrivenAt")]
    redriven_by: Annotated[str | None, Field(alias="redrivenBy", description="Who redrove it.")]


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
    id: Annotated[str, Field(description="Entries are numbered as they come.")]
    at: AwareDatetime
    owner_id: Annotated[str | None, Field(alias="ownerId", description="Whose things were touched; null: the installation's own.")]
    actor: Annotated[str, Field(description="key:<id> or oidc:<subject>; bootstrap: keys bootstrap or BOOTSTRAP_API_KEY.")]
    action: Annotated[str, Field(examples=["job.submit", "job.cancel", "schedule.put", "control.pause", "key.create", "job.read"])]
    resource: Annotated[str | None, Field(description="What it was done to beside jobs.", examples=["schedule/nightly"])]
    job_ids: Annotated[list[UUID], Field(alias="jobIds")]
    remote_addr: Annotated[str, Field(alias="remoteAddr")]
    user_agent: Annotated[str | None, Field(alias="userAgent", description="At most 200 bytes of it.")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    details: Annotated[dict[str, Any] | None, Field(description="What else was asked for; never a payload.")]


class ControlRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    paused: bool | None = False
    max_running: Annotated[
        int | None, Field(alias="maxRunning", description="How many may run at once, 0: none; null: any number.", ge=0, le=1000000)
    ] = None
    starts_per_second: Annotated[
        float | None,
        Field(
            alias="startsPerSecond",
            description="How many may start a second, 0.1: one in ten seconds; null: any number.",
            ge=1e-05,
            le=100000.0,
        ),
    ] = None


class Control(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    kind: Literal["queue", "type", "owner"]
    name: Annotated[
        str, Field(description="No control characters.", max_length=255, min_length=1, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
    ]
    paused: Annotated[bool, Field(description="None is started.")]
    max_running: Annotated[
        int | None, Field(alias="maxRunning", description="How many may run at once, 0: none; null: any number.", ge=0, le=1000000)
    ]
    starts_per_second: Annotated[
        float | None,
        Field(
            alias="startsPerSecond",
            description="How many may start a second, 0.1: one in ten seconds; null: any number.",
            ge=1e-05,
            le=100000.0,
        ),
    ]
    version: Annotated[int, Field(description="Rises with each change; 0: nothing was asked for.", ge=0)]
    applied: Annotated[bool, Field(description="The scheduler goes by this version.")]
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
    To one event.
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
    function: Annotated[str, Field(description="The consumer group without `jobweaver-`.")]
    topic: str
    records: Annotated[
        int, Field(description="Records that are not yet committed; of the compacted topic job-status at most so many.", ge=0)
    ]
    members: Annotated[int, Field(description="Processes that read for the function.", ge=0)]


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


class Percentiles(BaseModel):
    """
    Right to a tenth; null of none.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    count: Annotated[int, Field(ge=0)]
    p50_ms: Annotated[float | None, Field(alias="p50Ms")]
    p95_ms: Annotated[float | None, Field(alias="p95Ms")]
    p99_ms: Annotated[float | None, Field(alias="p99Ms")]


class JobTypeInfo(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: str
    builtin: bool
    accepted: Annotated[
        bool,
        Field(
            description="Whether jobs of this type are taken. Not those of a type that only workers tell of; JOB_TYPES would have to list it."
        ),
    ]
    title: str | None
    description: str | None
    schema_: Annotated[
        dict[str, Any] | None,
        Field(
            alias="schema",
            description='The JSON Schema (draft 2020-12) of the payload; null where a payload may be anything. A job whose payload it refuses\nis answered 400. While workers of one type tell of several schemas, a payload has to fit one of them, and that of\nmost workers stands here. The schemas true and false are shown as {} and {"not": {}}.\n',
        ),
    ]
    workers: Annotated[int, Field(description="How many live workers run it.", ge=0)]
    queues: Annotated[list[str], Field(description="The queues that these workers serve.")]


class Partition(RootModel[int]):
    root: Annotated[int, Field(ge=0)]


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
        str | None,
        Field(alias="nextCursor", description="Names the page before this one, of older lines; null where there is none."),
    ]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent: all are shown.",
            min_length=1,
        ),
    ] = None


class StreamEvents(RootModel[str]):
    root: Annotated[
        str,
        Field(
            description="Events in the format of the HTML standard, each with the lines id, event and data. What data is JSON of follows from the name of the event."
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
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent: all are shown.",
            min_length=1,
        ),
    ] = None


class StreamReload(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    reason: Annotated[str, Field(description="Why something was missed. For people.")]


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


class ScheduleRun(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]


class TickPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    ticks: Annotated[list[Tick], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class JobTypes(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_types: Annotated[list[JobTypeInfo], Field(alias="jobTypes")]
    accepts_any: Annotated[bool, Field(alias="acceptsAny", description="Jobs of any other type are taken, too.")]


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
    matched: Annotated[int, Field(description="Jobs that it has come to.", ge=0)]
    asked: Annotated[int, Field(description="Of those, how many got the command.", ge=0)]
    applied: Annotated[int, Field(description="Of those, how many it was carried out for.", ge=0)]
    refused: Annotated[int, Field(description="And how many not: it came too late.", ge=0)]
    skipped: Annotated[int, Field(description="Matched and not asked.", ge=0)]
    walked: Annotated[bool, Field(description="It has come to all of its jobs.")]


class RefusalReason(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    reason: str
    jobs: Annotated[int, Field(ge=1)]


class BatchAccepted(BaseModel):
    """
    The job is kept; 200 where its idempotency key was used before.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    status: Literal[200, 202]
    job_id: Annotated[UUID, Field(alias="jobId")]


class JobTick(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[str, Field(description="Of each owner's schedules one.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")]
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
    by: Annotated[str, Field(description="The function that did it; for a command, the key or token that asked for it.")]
    reason: str | None


class AttemptSummary(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    attempt: Annotated[int, Field(ge=1)]
    worker_id: Annotated[str | None, Field(alias="workerId")]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    outcome: Annotated[
        Literal["completed", "failed", "waiting", "lost", "interrupted", "cancelled", "snoozed"] | None,
        Field(description="Null while it is under way."),
    ]
    error_code: Annotated[str | None, Field(alias="errorCode")]
    message: str | None


class JobDetails(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    payload: Annotated[Any, Field(description="As it was sent.")]
    schedule: Annotated[
        JobTick | None, Field(description="The schedule's tick that it was made of; null where it was asked for by itself.")
    ]
    callback_url: Annotated[str | None, Field(alias="callbackUrl", description="As asked for.")]
    run_again_of: Annotated[
        UUID | None, Field(alias="runAgainOf", description="The job that this one does once more; null for most.")
    ]
    run_again_as: Annotated[
        UUID | None, Field(alias="runAgainAs", description="The newest job that does this one once more; null where none does.")
    ]
    after: Annotated[list[UUID], Field(description="The jobs that have to end first.")]
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None, Field(alias="onDependencyFailure", description="Null where it comes after none.")
    ]
    history: Annotated[list[HistoryEntry], Field(description="The last 100 moves, oldest first.")]
    attempts: Annotated[list[AttemptSummary], Field(description="Those of the history, oldest first.")]
    logs: Annotated[
        list[LogLine], Field(description="The last 200 lines of all attempts, oldest first, or fewer where these have 256 KiB.")
    ]


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
    kind: Literal["dependency", "order", "pause", "limit"]
    id: str


class EventJob(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    id: Annotated[str, Field(description="The event's id.")]
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
            description="SIMULATION, or what the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    jobs: JobCounts


class QueueStats(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    queue: Annotated[str, Field(description="One of those that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")]
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
    age_ms: Annotated[int, Field(alias="ageMs", description="At asOf.", ge=0)]


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
    minutes: Annotated[list[Flow], Field(description="The last 60, oldest first; the last is under way.")]
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
        Field(alias="errorCode", description="Null of those without a code and of those that are too rare to be told apart."),
    ]
    failed: Annotated[int, Field(ge=1)]


class WorkerAttempt(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1)]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt", description="Null: it waits for a slot.")]
    progress: ProgressOrNull | None


class JobHealthDetailsOrNull(BaseModel):
    """
    Null where the database, which knows them, is away, and for who may not see them.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
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
    root: Annotated[str, Field(description="Left out, it is WORKER.CALLBACK_FAILED.", pattern="^[A-Za-z][A-Za-z0-9._-]{0,63}$")]


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
    error_code: Annotated[ErrorCode1 | None, Field(alias="errorCode", description="Left out, it is WORKER.CALLBACK_FAILED.")] = None
    message: Message1 | None = None
    retryable: Annotated[bool | None, Field(description="Left out, it is true.")] = None
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
    path: Annotated[str, Field(description="As in payload.steps[3].durationMs; empty: the whole body.")]
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
        float | None,
        Field(description="The share of each delay that is left to chance; it only makes delays shorter.", ge=0.0, le=1.0),
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
        float | None,
        Field(description="The share of each delay that is left to chance; it only makes delays shorter.", ge=0.0, le=1.0),
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
        float | None,
        Field(description="The share of each delay that is left to chance; it only makes delays shorter.", ge=0.0, le=1.0),
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
    Keeps a core busy for so many rounds of a loop.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    type: Literal["COMPUTE"]
    iterations: Annotated[int, Field(ge=0, le=10000000000)]


class HttpCallStep(BaseModel):
    """
    Calls the URL, after the latency if there is one, and fails where the answer is 400 or above. Tried again is what may get better: 404, 408, 409, 429 and 500 or above; after a 429 or 503 with Retry-After then, and at most a year later.
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
    Waits as long as such a call would take, and calls nothing.
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
        int | None, Field(alias="failAttempts", description="How many attempts fail; without it all of them.", ge=0, le=2147483647)
    ] = None


class AtInstant(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    run_at: Annotated[AwareDatetime, Field(alias="runAt", description="The past is now. At most ten years ahead.")]


class AfterDelay(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    delay_ms: Annotated[int, Field(alias="delayMs", description="So long from now.", ge=0, le=315360000000)]


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
        str, Field(description="Names the pull worker; a process of several has one name each.", max_length=128, min_length=1)
    ]
    types: Annotated[list[JobType], Field(max_length=100, min_length=1)]
    queues: Annotated[WorkQueues | None, Field(description="Null, absent or empty, any.")] = None
    slots: Annotated[int | None, Field(description="The most attempts to answer with.", ge=1, le=500)] = 1
    wait: Annotated[str | None, Field(description="A duration from 0s to 1m, as 30s or 500ms.")] = "30s"


class WorkAttempt(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_id: Annotated[UUID, Field(alias="jobId")]
    attempt: Annotated[int, Field(ge=1)]
    token: Annotated[str, Field(description="Names an attempt to its pull worker only.", max_length=200, min_length=1)]
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="SIMULATION, or what the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    queue: Annotated[str, Field(description="One of those that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    tags: Annotated[list[str] | None, Field(description="The job's tags; null where they could not be read at the moment.")]
    payload: Annotated[Any, Field(description="The job's payload.")]
    deadline: Annotated[AwareDatetime, Field(description="When timeoutMs is over: the attempt has failed then.")]
    callback: Annotated[
        Callback | None,
        Field(description="With which an outside system ends an attempt that was settled as WAITING; null where none can."),
    ]


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
            description="With the role work, the job types of which it may have attempts; null, absent or empty, any.",
        ),
    ] = None
    work_queues: Annotated[
        WorkQueues | None,
        Field(
            alias="workQueues",
            description="With the role work, the queues of which it may have attempts; null, absent or empty, any.",
        ),
    ] = None
    owner_id: Annotated[Key | None, Field(alias="ownerId", description="Null or absent stands for the owner of the request.")] = (
        None
    )
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt", description="Null or absent, never.")] = None


class KeyFields(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key_id: Annotated[str, Field(alias="keyId", pattern="^[a-z2-7]{12}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId", description="Whose; null: the installation's own.")]
    name: str
    roles: list[Literal["submit", "read", "operate", "work", "admin"]]
    work_types: Annotated[
        list[JobType], Field(alias="workTypes", description="Of which the role work gives attempts; empty, any.", max_length=100)
    ]
    work_queues: Annotated[
        list[Queue], Field(alias="workQueues", description="Of which the role work gives attempts; empty, any.", max_length=100)
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
    auth: Annotated[
        Literal["on", "off"], Field(description="Where it is off nobody logs in. Where it is on, an API key always works.")
    ]
    oidc: Annotated[
        OidcLogin | None, Field(description="How to log in at an issuer of OpenID Connect; null where OIDC_CLIENT_ID is not set.")
    ]


class RunAgainRequest(BaseModel):
    """
    A JSON Merge Patch of a JobRequest, whose members have the limits of that; null leaves a member out.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str | None,
        Field(
            alias="jobType",
            description="SIMULATION, or what the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ] = None
    payload: Annotated[
        Any | None, Field(description="An object is merged into the old payload; any other JSON but null replaces it.")
    ] = None
    max_retry_count: Annotated[int | None, Field(alias="maxRetryCount", ge=0, le=100)] = None
    retry_policy: Annotated[
        dict[str, Any] | None,
        Field(alias="retryPolicy", description="Is merged into the old policy; one of another type replaces it."),
    ] = None
    queue: Annotated[str | None, Field(max_length=63, min_length=1)] = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt")] = None
    delay_ms: Annotated[int | None, Field(alias="delayMs", ge=0, le=315360000000)] = None
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt")] = None
    timeout_ms: Annotated[int | None, Field(alias="timeoutMs", ge=1, le=86400000)] = None
    idempotency_key: Annotated[str | None, Field(alias="idempotencyKey", max_length=255, min_length=1)] = None
    ordering_key: Annotated[str | None, Field(alias="orderingKey", max_length=255, min_length=1)] = None
    after: Annotated[list[UUID] | None, Field(max_length=10000)] = None
    on_dependency_failure: Annotated[Literal["cancel", "run"] | None, Field(alias="onDependencyFailure")] = None
    tags: Annotated[list[Tag] | None, Field(max_length=16)] = None
    owner_id: Annotated[str | None, Field(alias="ownerId", max_length=255, min_length=1)] = None
    callback_url: Annotated[str | None, Field(alias="callbackUrl", max_length=2000, min_length=1)] = None


class JobChange(BaseModel):
    """
    A JSON Merge Patch of what can be changed of a JobRequest, with the limits of that; null brings back the default.
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
        Field(alias="retryPolicy", description="Is merged into the old policy; one of another type replaces it."),
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
    name: Annotated[str, Field(description="Of each owner's schedules one.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    cron: Annotated[
        str,
        Field(
            description="Five fields (minute, hour, day of month, month, day of week), or six with seconds in front, of values, names (MON, JAN), ranges, lists and steps; or @hourly, @daily, @weekly, @monthly, @yearly; or @every with a duration, as @every 90s, counted from startAt, else from when it was created. Where both days are restricted, one that fits is enough. Where clocks are put forward, a time that does not exist fires at the first instant after the gap; where they are put back, a time that comes twice fires once. An hour field of every hour goes by the clock as it is instead.",
            max_length=255,
        ),
    ]
    time_zone: Annotated[str, Field(alias="timeZone")]
    job: Annotated[
        dict[str, Any] | None,
        Field(
            description="As it was sent; without its ownerId, where that was not the owner of the key. Null where it cannot be shown."
        ),
    ]
    overlap: Annotated[
        Literal["allow", "skip", "cancel"],
        Field(
            description="When a job of the schedule has not ended: start another, skip the tick, or start another and cancel the old one."
        ),
    ]
    missed: Annotated[
        Literal["skip", "one", "all"],
        Field(
            description="What becomes of ticks that are over 30 s late: none of them fires, the last one, or the last 1,000. Of a pause, none does."
        ),
    ]
    paused: bool
    start_at: Annotated[AwareDatetime | None, Field(alias="startAt")]
    end_at: Annotated[AwareDatetime | None, Field(alias="endAt")]
    next_at: Annotated[AwareDatetime | None, Field(alias="nextAt", description="Null while it is paused")]
    upcoming: Annotated[list[AwareDatetime], Field(max_length=5)]
    last_at: Annotated[AwareDatetime | None, Field(alias="lastAt", description="The last tick that fired.")]
    last_job_id: Annotated[UUID | None, Field(alias="lastJobId")]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent: all are shown.",
            min_length=1,
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
        AwareDatetime | None, Field(alias="runAt", description="For reschedule. The past is now. At most ten years ahead.")
    ] = None
    delay_ms: Annotated[
        int | None, Field(alias="delayMs", description="For reschedule instead of runAt, so long from now.", ge=0, le=315360000000)
    ] = None
    job_ids: Annotated[list[JobId] | None, Field(alias="jobIds", max_length=10000, min_length=1)] = None
    filter: OperationFilter | None = None
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again gives the same operation, or 409 if the rest of the request differs.",
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
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt", description="Of a reschedule.")]
    filter: OperationFilter | None
    jobs: Annotated[int | None, Field(description="How many jobs are on the list; null: it has a filter.")]
    by: Annotated[str, Field(description="The key or token that asked for it.")]
    status: Annotated[
        Literal["RUNNING", "ABORTING", "ABORTED", "COMPLETED"],
        Field(description="It ends when it has come to all of its jobs and all that it asked is answered."),
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    progress: OperationProgress
    reasons: Annotated[list[RefusalReason], Field(description="Why jobs were skipped or refused, the most frequent first.")]


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
            description="SIMULATION, or what the installation lists in JOB_TYPES.",
            pattern="^[A-Za-z][A-Za-z0-9._-]{0,99}$",
        ),
    ]
    queue: Annotated[str, Field(description="One of those that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")]
    owner_id: Annotated[str | None, Field(alias="ownerId")]
    status: Literal["SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING", "COMPLETED", "FAILED", "CANCELLED"]
    priority: Annotated[int, Field(description="The higher the sooner.", ge=0, le=9)]
    attempt: Annotated[int, Field(description="Of the last attempt; 0 before the first.", ge=0)]
    retry_count: Annotated[int, Field(alias="retryCount", description="How many failed attempts were retried.", ge=0)]
    max_retry_count: Annotated[
        int, Field(alias="maxRetryCount", description="The installation may have another default for a job type.", ge=0, le=100)
    ]
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    run_at: Annotated[AwareDatetime | None, Field(alias="runAt", description="As asked for.")]
    next_run_at: Annotated[AwareDatetime | None, Field(alias="nextRunAt", description="When the next attempt is due.")]
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt")]
    finished_at: Annotated[AwareDatetime | None, Field(alias="finishedAt")]
    progress: ProgressOrNull | None
    output: Annotated[Any, Field(description="What the handler gave, any JSON; null: nothing, or not yet.")]
    last_error: Annotated[LastErrorOrNull | None, Field(alias="lastError")]
    trace_id: Annotated[UUID, Field(alias="traceId")]
    tags: list[Tag]
    blocked_by: Annotated[
        list[Blocker],
        Field(
            alias="blockedBy",
            description="What a SCHEDULED or PENDING job waits for, beside its time and a worker: a dependency, which is a job's id (at most 20 of them are named), the order of its orderingKey, or, when PENDING, a pause or a limit of a control that it is under, as queue:default.",
        ),
    ]
    version: Annotated[int, Field(description="Rises with each change; 0: not yet scheduled.", ge=0)]
    callback_deadline_at: Annotated[
        AwareDatetime | None, Field(alias="callbackDeadlineAt", description="Of a WAITING job; else null.")
    ]
    cancel_requested_at: Annotated[
        AwareDatetime | None, Field(alias="cancelRequestedAt", description="While a cancel is under way; else null.")
    ]
    expires_at: Annotated[AwareDatetime | None, Field(alias="expiresAt", description="As asked for.")]
    ordering_key: Annotated[str | None, Field(alias="orderingKey")]
    sealed: Annotated[
        list[str] | None,
        Field(
            description="Members that cannot be shown whole: they are sealed with a key that the gateway does not have, or were altered. JSON is then null, and a text is [sealed]. Absent: all are shown.",
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


class EventsAccepted(BaseModel):
    """
    To a batch, in its order.
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


class Latency(BaseModel):
    """
    Jobs that asked for a later time count in run only, and those whose first attempt failed not in acceptToStart. Run is of the last attempt.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    accept_to_start: Annotated[Percentiles, Field(alias="acceptToStart")]
    run: Percentiles
    accept_to_end: Annotated[Percentiles, Field(alias="acceptToEnd")]


class Worker(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    worker_id: Annotated[str, Field(alias="workerId", description="New at each start.", min_length=1)]
    version: str
    live: Annotated[bool, Field(description="Seen within the last 10 s.")]
    stopping: Annotated[bool, Field(description="It finishes what it has and takes nothing more.")]
    seen_at: Annotated[AwareDatetime, Field(alias="seenAt")]
    queues: list[str]
    job_types: Annotated[list[str], Field(alias="jobTypes")]
    partitions: Annotated[dict[str, list[Partition]], Field(description="By queue.")]
    slots: Annotated[int, Field(description="How many attempts it can run at once.", ge=0)]
    free: Annotated[int | None, Field(description="Null for an owner: it tells of the jobs of others.", ge=0)]
    busy: Annotated[int | None, Field(description="Likewise.", ge=0)]
    rate: Annotated[
        float | None, Field(description="Attempts a second that it would finish with all slots busy. Likewise.", ge=0.0)
    ]
    attempts: Annotated[
        list[WorkerAttempt],
        Field(
            description="What it has claimed and not settled; what came within 100 ms is left out. For an owner, of its own jobs."
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
    job_type: Annotated[str | None, Field(alias="jobType", description="Null where each request decides.")]
    accepted: Annotated[int, Field(description="Requests that became jobs.", ge=0)]
    replayed: Annotated[int, Field(description="Requests whose message had come before.", ge=0)]
    rejected: Annotated[int, Field(description="Requests that were answered with 400 to 499, a wrong signature among them.", ge=0)]
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
            description="Members of another status are refused unless they are null, so that a client may send null for what it does not use."
        ),
    ]


class SchedulePage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    schedules: Annotated[list[Schedule], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


class Workers(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    workers: list[Worker]


class LatencyByWindow(BaseModel):
    """
    Of jobs that ended in the last 5 minutes, and in the minutes, the hours and the days of throughput. What is older than an hour may lag a minute behind.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_5m: Annotated[Latency, Field(alias="5m")]
    field_1h: Annotated[Latency, Field(alias="1h")]
    field_24h: Annotated[Latency, Field(alias="24h")]
    field_30d: Annotated[Latency, Field(alias="30d")]


class Failures(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_types: Annotated[
        list[FailedJobType], Field(alias="jobTypes", description="The ten job types of which most jobs failed, the worst first.")
    ]
    error_codes: Annotated[
        list[FailedErrorCode],
        Field(
            alias="errorCodes",
            description="The ten error codes with which most jobs failed, the worst first. Of each queue and job type, the 20 most frequent codes of a minute, an hour or a day are told apart.",
        ),
    ]


class WorkAttempts(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    attempts: Annotated[list[WorkAttempt], Field(min_length=1)]


class JobRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    job_type: Annotated[
        str,
        Field(
            alias="jobType",
            description="SIMULATION, or what the installation lists in JOB_TYPES.",
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
        Field(alias="maxRetryCount", description="The installation may have another default for a job type.", ge=0, le=100),
    ] = 3
    retry_policy: Annotated[
        RetryExponential | RetryFixed | RetryList | None,
        Field(
            alias="retryPolicy",
            description="When a failed attempt runs again; without it as the installation has it for the job type, or exponential, with its defaults.",
        ),
    ] = None
    queue: Annotated[
        str | None, Field(description="One of those that the installation lists in QUEUES.", pattern="^[a-z0-9-]{1,63}$")
    ] = "default"
    priority: Annotated[int | None, Field(description="The higher the sooner.", ge=0, le=9)] = 0
    run_at: Annotated[
        AwareDatetime | None, Field(alias="runAt", description="Not before this instant; the past is now. At most ten years ahead.")
    ] = None
    delay_ms: Annotated[
        int | None, Field(alias="delayMs", description="Instead of runAt; not before so long from now.", ge=0, le=315360000000)
    ] = 0
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            alias="expiresAt",
            description="A job that has not started by then is CANCELLED. Later than now and than the time from which it may run, by at most ten years.",
        ),
    ] = None
    timeout_ms: Annotated[
        int | None,
        Field(
            alias="timeoutMs",
            description="How long one attempt may run. The installation may have another default for a job type.",
            ge=1,
            le=86400000,
        ),
    ] = 600000
    idempotency_key: Annotated[
        str | None,
        Field(
            alias="idempotencyKey",
            description="The same key again gives the same job, or 409 if the rest of the request differs.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    job_id: Annotated[
        UUID | None,
        Field(
            alias="jobId",
            description="The id that the job is to have, made by the client: a UUID of version 7, at most a day ahead of time. It is the idempotencyKey, too, so that the same request again gives the same job; 409 where another job has the id. The job's trace is kept only where the last bit is set.",
        ),
    ] = None
    ordering_key: Annotated[
        str | None,
        Field(
            alias="orderingKey",
            description="The owner's jobs of one key run one after another in the order in which they were accepted; the next starts when the one before has ended, its retries included.",
            max_length=255,
            min_length=1,
            pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$",
        ),
    ] = None
    after: Annotated[
        list[UUID] | None,
        Field(description="Jobs of the same owner that have to be COMPLETED before this one runs.", max_length=10000),
    ] = None
    on_dependency_failure: Annotated[
        Literal["cancel", "run"] | None,
        Field(
            alias="onDependencyFailure", description="What becomes of a job when one that it comes after ends FAILED or CANCELLED."
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
            description="Absolute, http or https, without credentials and fragment, at most 2,000 bytes. When the job has ended, a CloudEvent of type io.jobweaver.job.status.v1 whose data is the job (JobSummary) is POSTed to it, signed by Standard Webhooks, until it answers 2xx: at once, and 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h after each other. 410 ends that.",
            max_length=2000,
            min_length=1,
        ),
    ] = None


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
    An operation with the jobs that were left out.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    skipped_jobs: Annotated[
        list[SkippedJob],
        Field(
            alias="skippedJobs",
            description="The first 1,000 that were skipped or refused, in the order of their ids.",
            max_length=1000,
        ),
    ]


class Job(JobFields, JobDetails):
    """
    A job with all that is known of it.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class JobSummary(JobFields):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )


class WholeRejectedRecord(RejectedFields):
    """
    A rejected record with all that it has.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    key: RecordBytesOrNull | None
    headers: list[RecordHeader]
    value: RecordBytesOrNull | None


class Hooks(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    hooks: list[Hook]


class Error1(BaseModel):
    """
    To a request that accepts application/problem+json it also has the members of RFC 9457, which are type (about:blank), title (the phrase of the HTTP status), detail (the message) and instance (the traceId as a URN, urn:uuid:…).
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    timestamp: AwareDatetime
    status: Annotated[int, Field(ge=400, le=599)]
    error_code: Annotated[
        Literal["API.INVALID_JOB_REQUEST", "API.INVALID_EVENT", "API.UNAUTHORIZED", "API.FORBIDDEN", "API.JOB_NOT_FOUND", "API.SCHEDULE_NOT_FOUND", "API.SCHEDULE_EXISTS", "API.NOT_FOUND", "API.METHOD_NOT_ALLOWED", "API.IDEMPOTENCY_CONFLICT", "API.INVALID_STATE_TRANSITION", "API.CALLBACK_EXPIRED", "API.ATTEMPT_OVER", "API.REQUEST_TIMEOUT", "API.PAYLOAD_TOO_LARGE", "API.UNSUPPORTED_MEDIA_TYPE", "API.RATE_LIMITED", "API.INTERNAL", "API.UNAVAILABLE", "API.SEALED"],
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
    status: Literal[400, 409, 413]
    error: Error1


class DeadPageByNumber(BaseModel):
    """
    To a request by page or size.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: Annotated[list[JobSummary], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]
    page: Annotated[int, Field(ge=0)]
    size: Annotated[int, Field(ge=1)]
    total_elements: Annotated[
        int | None,
        Field(
            alias="totalElements",
            description="How many jobs fit; null where more than 100,000 dead jobs would have to be looked at.",
        ),
    ]


class FailuresByWindow(BaseModel):
    """
    What failed most in the minutes, the hours and the days of throughput. A job that is retried by hand and fails again is counted twice.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    field_1h: Annotated[Failures, Field(alias="1h")]
    field_24h: Annotated[Failures, Field(alias="24h")]
    field_30d: Annotated[Failures, Field(alias="30d")]


class ScheduleRequest(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    name: Annotated[
        str | None, Field(description="Required in a POST; in a PUT the path has it.", pattern="^[a-z0-9][a-z0-9._-]{0,99}$")
    ] = None
    cron: Annotated[
        str,
        Field(
            description="Five fields (minute, hour, day of month, month, day of week), or six with seconds in front, of values, names (MON, JAN), ranges, lists and steps; or @hourly, @daily, @weekly, @monthly, @yearly; or @every with a duration, as @every 90s, counted from startAt, else from when it was created. Where both days are restricted, one that fits is enough. Where clocks are put forward, a time that does not exist fires at the first instant after the gap; where they are put back, a time that comes twice fires once. An hour field of every hour goes by the clock as it is instead.",
            max_length=255,
        ),
    ]
    time_zone: Annotated[str | None, Field(alias="timeZone", description="A name of the IANA, as Europe/Berlin.")] = "UTC"
    job: ScheduledJob
    overlap: Annotated[
        Literal["allow", "skip", "cancel"] | None,
        Field(
            description="When a job of the schedule has not ended: start another, skip the tick, or start another and cancel the old one."
        ),
    ] = "allow"
    missed: Annotated[
        Literal["skip", "one", "all"] | None,
        Field(
            description="What becomes of ticks that are over 30 s late: none of them fires, the last one, or the last 1,000. Of a pause, none does."
        ),
    ] = "one"
    paused: bool | None = False
    start_at: Annotated[
        AwareDatetime | None, Field(alias="startAt", description="It does not fire before. At most ten years ahead.")
    ] = None
    end_at: Annotated[AwareDatetime | None, Field(alias="endAt", description="It does not fire after.")] = None


class JobOrAccepted(RootModel[Job | Accepted]):
    root: Annotated[Job | Accepted, Field(description="The whole job to a request with wait, else what was accepted before.")]


class JobPage(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    jobs: Annotated[list[JobSummary], Field(max_length=200)]
    next_cursor: Annotated[str | None, Field(alias="nextCursor", description="Null on the last page.")]


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
            description="When the jobs were counted; null when those that have not ended are many and not yet counted.",
        ),
    ]
    jobs: JobCounts
    types: list[TypeStats]
    queues: list[QueueStats]
    oldest_waiting: Annotated[OldestWaiting | None, Field(alias="oldestWaiting")]
    throughput: Throughput
    latency: LatencyByWindow
    failures: FailuresByWindow


class BatchResults(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
    )
    results: list[BatchAccepted | BatchRefused]
