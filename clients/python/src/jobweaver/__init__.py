"""Submit jobs to JobWeaver, wait for them, follow them, run them, and verify its webhooks."""

from . import models
from ._steps import VERSION as __version__
from ._steps import (
    AlertRequest,
    BatchRequest,
    Filter,
    FlowJobRequest,
    FlowRequest,
    JobChange,
    JobRequest,
    RunAgainRequest,
    ScheduleRequest,
    has_ended,
    is_unreached,
)
from .attempt import AbortReason, Attempt, AttemptFailed, CallFailed, NotRetryable, Outcome, RetryAfter, Snooze, WaitForCallback
from .client import AsyncClient, Client
from .errors import (
    ApiError,
    ClientClosed,
    Conflict,
    Forbidden,
    GatewayUnreachable,
    InvalidRequest,
    JobEnded,
    JobWeaverError,
    NotFound,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from .flow import AsyncFlowBuilder, FlowBuilder, FlowJob, or_else
from .models import Accepted, Job, JobSummary, ReceivedEvent
from .outbox import enqueue, enqueue_async
from .stream import JobEvent, LogEvent, ProgressEvent, ReloadEvent, StatsEvent, StreamEvent
from .task import AsyncTask, Task, TaskSchedule
from .webhook import Ending, Webhook, WebhookVerificationError
from .worker import Worker

__all__ = [
    "AbortReason",
    "Accepted",
    "AlertRequest",
    "ApiError",
    "AsyncClient",
    "AsyncFlowBuilder",
    "AsyncTask",
    "Attempt",
    "AttemptFailed",
    "BatchRequest",
    "CallFailed",
    "Client",
    "ClientClosed",
    "Conflict",
    "Ending",
    "Filter",
    "FlowBuilder",
    "FlowJob",
    "FlowJobRequest",
    "FlowRequest",
    "Forbidden",
    "GatewayUnreachable",
    "InvalidRequest",
    "Job",
    "JobChange",
    "JobEnded",
    "JobEvent",
    "JobRequest",
    "JobSummary",
    "JobWeaverError",
    "LogEvent",
    "NotFound",
    "NotRetryable",
    "Outcome",
    "ProgressEvent",
    "RateLimited",
    "ReceivedEvent",
    "ReloadEvent",
    "RetryAfter",
    "RunAgainRequest",
    "ScheduleRequest",
    "Snooze",
    "StatsEvent",
    "StreamEvent",
    "Task",
    "TaskSchedule",
    "Unauthorized",
    "Unavailable",
    "WaitForCallback",
    "Webhook",
    "WebhookVerificationError",
    "Worker",
    "__version__",
    "enqueue",
    "enqueue_async",
    "has_ended",
    "is_unreached",
    "models",
    "or_else",
]
