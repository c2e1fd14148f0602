"""The exceptions of this client."""

from __future__ import annotations

from typing import Any

import httpx

from .models import Detail, JobFields

LONGEST_ASK = 3600.0


class JobWeaverError(Exception):
    """Base of all errors that this client raises."""


class GatewayUnreachable(JobWeaverError):
    """The gateway could not be reached, or did not respond in time: it is not known whether it has carried out the request."""


class ClientClosed(JobWeaverError):
    """The client was closed while a call was under way, or before."""


class JobEnded(JobWeaverError):
    """A job has ended FAILED or CANCELLED."""

    def __init__(self, job: JobFields) -> None:
        why = f": {job.last_error.error_code}: {job.last_error.message}" if job.last_error else ""
        super().__init__(f"job {job.job_id} is {job.status}{why}")
        self.job = job


class ApiError(JobWeaverError):
    """An error response: its problem details (RFC 9457) and the members that JobWeaver adds.

    error_code is a code such as API.JOB_NOT_FOUND, and empty if the response is not from JobWeaver; docs/errors.md lists the codes.
    retry_after is in seconds.
    """

    def __init__(self, response: httpx.Response) -> None:
        try:
            body: Any = response.json()
        except ValueError:
            body = None
        known: dict[str, Any] = body if isinstance(body, dict) else {}
        self.status = response.status_code
        self.error_code: str = known.get("errorCode") or ""
        self.message: str = known.get("message") or response.reason_phrase
        self.job_id: str | None = known.get("jobId")
        self.trace_id: str | None = known.get("traceId") or response.headers.get("X-Trace-Id")
        self.details = [Detail.model_validate(d) for d in known.get("details") or []]
        self.retry_after = retry_after(response.headers)
        super().__init__(f"{self.status} {self.error_code}".strip() + f": {self.message}")


class InvalidRequest(ApiError):
    """400, 413, 415"""


class Unauthorized(ApiError):
    """401"""


class Forbidden(ApiError):
    """403"""


class NotFound(ApiError):
    """404"""


class Conflict(ApiError):
    """409: the state of the job, or the idempotency key, does not allow it."""


class RateLimited(ApiError):
    """429"""


class Unavailable(ApiError):
    """502, 503, 504"""


_KINDS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    413: InvalidRequest,
    415: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def api_error(response: httpx.Response) -> ApiError:
    """Returns the error for a response whose body has been read."""
    return _KINDS.get(response.status_code, ApiError)(response)


def retry_after(headers: httpx.Headers) -> float | None:
    """Returns Retry-After in seconds, or else the time of the RateLimit policy that is used up."""
    text = headers.get("Retry-After")
    if text is not None:
        return min(float(text), LONGEST_ASK) if text.isascii() and text.isdigit() else None
    return max(empty_policies(headers).values(), default=None)


def empty_policies(headers: httpx.Headers) -> dict[str, float]:
    """Returns the seconds until each used-up policy allows requests again, from RateLimit such as `"requests";r=0;t=2`."""
    empty = {}
    for item in headers.get("RateLimit", "").split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        values = dict(p.split("=", 1) for p in parameters if "=" in p)
        left = values.get("t", "")
        if values.get("r") == "0" and left.isascii() and left.isdigit():
            empty[name.strip('"')] = min(float(left), LONGEST_ASK)
    return empty
