import type { components } from './schema.gen';

type ErrorBody = components['schemas']['Error'];

/** ApiError is an error response of the API, the lack of a response (status 0), or a failure of this page (-1). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly traceId: string | null;
  readonly details: { path: string; message: string }[];
  readonly retryAfterSeconds: number | null;

  constructor(status: number, body: Partial<ErrorBody>, retryAfterSeconds: number | null = null) {
    super(body.message ?? `the server answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = body.errorCode ?? codeOf(status);
    this.traceId = body.traceId ?? null;
    this.details = body.details ?? [];
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** retryAfter returns after how many seconds a refused request may be sent again: what the gateway names, or a second. */
export function retryAfter({ headers }: Response): number {
  const named = headers.get('Retry-After') ?? '';
  return /^\d+$/.test(named) ? Number(named) : 1;
}

function codeOf(status: number): string {
  return status === 0 ? 'NO_ANSWER' : status < 0 ? 'PAGE' : `HTTP ${status}`;
}

/** noAnswer returns the error of a request without a response. */
export function noAnswer(): ApiError {
  return new ApiError(0, { message: 'the gateway cannot be reached' });
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) {
    return error;
  }
  return new ApiError(-1, { message: error instanceof Error ? error.message : String(error) });
}

/** advice returns what the user can do about an error. */
export function advice(error: ApiError): string {
  switch (error.status) {
    case -1:
      return 'Try again. If the error persists, reload the page.';
    case 0:
      return 'Check your connection, and whether the gateway runs.';
    case 400:
      return error.details.length > 0 ? 'Correct what is listed, and send it again.' : 'Correct the request, and send it again.';
    case 401:
      return 'Log in with a valid API key.';
    case 403:
      return 'Log in with a key that has the role, or ask an admin for one.';
    case 404:
      return 'It may have been deleted, or belong to another owner. Check the id.';
    case 409:
      return 'Its state has changed since this page showed it. Look at it again.';
    case 413:
      return 'Make it smaller, or store the data elsewhere and send a link to it.';
    case 429:
      return `Wait ${error.retryAfterSeconds ?? 1} s, and try again.`;
    case 503:
      return 'A database does not answer, so nothing was changed. Try again in a moment; /api/health shows what is down.';
    default:
      return 'Try again. If the error persists, look for the trace id in the logs of the gateway.';
  }
}
