import type { components } from "./schema.gen.js";

type Job = components["schemas"]["JobSummary"];

/** What is wrong at one place of a request; the path is as payload.steps[3].durationMs. */
export type ErrorDetail = components["schemas"]["Detail"];

/** All errors that this client throws by itself. */
export class JobWeaverError extends Error {
  override name = "JobWeaverError";
}

/** The gateway could not be reached, or did not answer in time. Nobody knows whether it has done what it was asked for. */
export class ConnectionError extends JobWeaverError {
  override name = "ConnectionError";
}

/** A job has ended FAILED or CANCELLED. */
export class JobEndedError extends JobWeaverError {
  override name = "JobEndedError";
  constructor(readonly job: Job) {
    const why = job.lastError ? `: ${job.lastError.errorCode}: ${job.lastError.message}` : "";
    super(`job ${job.jobId} is ${job.status}${why}`);
  }
}

/** An answer that is no success: its problem details (RFC 9457) and what JobWeaver adds to them. docs/errors.md lists the codes. */
export class ApiError extends JobWeaverError {
  override name = "ApiError";
  readonly status: number;
  /** As API.JOB_NOT_FOUND; empty where the answer is not JobWeaver's. */
  readonly errorCode: string;
  readonly details: ErrorDetail[];
  readonly jobId: string | null;
  readonly traceId: string | null;
  /** When the gateway asks to be asked again. */
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

/** The error for an answer, given its body as JSON or as text. */
export function apiError(response: Response, body: unknown): ApiError {
  return new (kinds[response.status] ?? ApiError)(response, body);
}

/** What a request of `api` is answered with; it throws where that is no success. */
export function unwrap<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (!answer.response.ok) {
    throw apiError(answer.response, answer.error);
  }
  return answer.data as T;
}

/** Whether an error is of the way to the gateway, or of one that cannot answer at the moment. */
export function isUnreached(error: unknown): boolean {
  return error instanceof ConnectionError || error instanceof UnavailableError;
}

const longestAsk = 3_600_000;

/** Retry-After in milliseconds, and without one what RateLimit says of a policy that has nothing left. */
export function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("Retry-After");
  if (text !== null) {
    return /^[0-9]+$/.test(text) ? Math.min(Number(text) * 1000, longestAsk) : undefined;
  }
  const left = [...emptyPolicies(headers).values()];
  return left.length > 0 ? Math.max(...left) : undefined;
}

/** Of each policy that has nothing left, for how many milliseconds, by RateLimit such as `"requests";r=0;t=2`. */
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
