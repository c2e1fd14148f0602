import createClient from 'openapi-fetch';
import { ApiError, noAnswer } from './error';
import { noteAnswer, noteSilence } from '../live/live';
import type { components, paths } from './schema.gen';
import { session } from './session';

export type Schemas = components['schemas'];

/** api has a typed method for each operation of the contract; wrap its calls in `answer`. */
export const api = createClient<paths>({
  baseUrl: '',
  querySerializer: { array: { style: 'form', explode: true } },
});

api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(session.headers())) {
      request.headers.set(name, value);
    }
    return request;
  },
  onResponse() {
    noteAnswer();
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === 'AbortError') {
      return error; // the page of the request is gone
    }
    noteSilence();
    return noAnswer();
  },
});

interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** answer returns the body of a successful response, and throws an ApiError for any other. */
export async function answer<T>(call: Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (response.ok) {
    return data as T;
  }
  if (response.status === 401) {
    session.close(); // the key was revoked or has expired; the login screen takes over
  }
  const body = typeof error === 'object' && error !== null ? error : {};
  throw new ApiError(response.status, body, response.headers.get('Retry-After'));
}
