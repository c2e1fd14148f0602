import type { components } from "./schema.gen.js";

type Job = components["schemas"]["JobSummary"];

/** An error at one place of a request, with a path such as payload.steps[3].durationMs. */
export type ErrorDetail = components["schemas"]["Detail"];

/** Base of all errors that this client throws. */
export class JobWeaverError extends Error {
  override name = "JobWeaverError";
}

/** The gateway could not be reached, or did not respond in time. It is not known whether it has carried out the request. */
export class ConnectionError extends JobWeaverError {
  override name = "ConnectionError";
}

/** A job has ended FAILED or CANCELLED. */
export class JobEndedError extends JobWeaverError {
  override name = "JobEndedError";
  declare readonly job: Job;
  constructor(job: Job) {
    const why = job.lastError ? `: ${job.lastError.errorCode}: ${job.lastError.message}` : "";
    super(`job ${job.jobId} is ${job.status}${why}`);
    Object.defineProperty(this, "job", { value: job }); // not enumerable, so Node.js prints the error without all of the job
  }
}

/** An error response: its problem details (RFC 9457) and the members that JobWeaver adds. docs/errors.md lists the codes. */
export class ApiError extends JobWeaverError {
  override name = "ApiError";
  readonly status: number;
  /** Such as API.JOB_NOT_FOUND; empty if the response is not from JobWeaver. */
  readonly errorCode: string;
  readonly details: ErrorDetail[];
  readonly jobId: string | null;
  readonly traceId: string | null;
  /** After which the gateway accepts the request again. */
  readonly retryAfterMs: number | undefined;

  constructor(response: Response, body: unknown) {
    const known = isObject(body) ? (body as Partial<components["schemas"]["Error"]>) : {};
    const message = known.message ?? (response.statusText || "no success");
    super(`${response.status} ${known.errorCode ?? ""}`.trim() + `: ${message}`);
    this.status = response.status;
    this.errorCode = known.errorCode ?? "";
    this.details = known.details ?? [];
    this.jobId = known.jobId ?? null;
    this.traceId = known.traceId ?? response.headers.get("X-Trace-Id");
    this.retryAfterMs = retryAfter(response.headers);
  }
}

/** 400, 413, 415 */
export class InvalidRequestError extends ApiError {
  override name = "InvalidRequestError";
}
/** 401 */
export class UnauthorizedError extends ApiError {
  override name = "UnauthorizedError";
}
/** 403 */
export class ForbiddenError extends ApiError {
  override name = "ForbiddenError";
}
/** 404 */
export class NotFoundError extends ApiError {
  override name = "NotFoundError";
}
/** 409: the state of the job, or the idempotency key, does not allow it. */
export class ConflictError extends ApiError {
  override name = "ConflictError";
}
/** 429 */
export class RateLimitedError extends ApiError {
  override name = "RateLimitedError";
}
/** 502, 503, 504 */
export class UnavailableError extends ApiError {
  override name = "UnavailableError";
}

const kinds: Record<number, typeof ApiError> = {
  400: InvalidRequestError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitedError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** Returns the error for a response, given its body as JSON or as text. */
export function apiError(response: Response, body: unknown): ApiError {
  return new (kinds[response.status] ?? ApiError)(response, body);
}

/** Returns the data of a response from `api`, and throws if the response is an error. */
export function unwrap<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (!answer.response.ok) {
    throw apiError(answer.response, answer.error);
  }
  return answer.data as T;
}

/** Whether the gateway could not be reached, or is not available at the moment. */
export function isUnreached(error: unknown): boolean {
  return error instanceof ConnectionError || error instanceof UnavailableError;
}

const longestAsk = 3_600_000;

/** Returns Retry-After in milliseconds, or else the time of the RateLimit policy that is used up. */
export function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("Retry-After");
  if (text !== null) {
    return /^[0-9]+$/.test(text) ? Math.min(Number(text) * 1000, longestAsk) : undefined;
  }
  const left = [...emptyPolicies(headers).values()];
  return left.length > 0 ? Math.max(...left) : undefined;
}

/** Returns the milliseconds until each used-up policy allows requests again, from RateLimit such as `"requests";r=0;t=2`. */
export function emptyPolicies(headers: Headers): Map<string, number> {
  const empty = new Map<string, number>();
  for (const item of (headers.get("RateLimit") ?? "").split(",")) {
    const [name, ...parameters] = item.split(";").map((part) => part.trim());
    const value = (key: string) => parameters.find((p) => p.startsWith(`${key}=`))?.slice(2) ?? "";
    if (value("r") === "0" && /^[0-9]+$/.test(value("t"))) {
      empty.set((name ?? "").replaceAll('"', ""), Math.min(Number(value("t")) * 1000, longestAsk));
    }
  }
  return empty;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
