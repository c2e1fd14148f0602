import createClient from 'openapi-fetch';
import { base } from './base';
import { ApiError, noAnswer, retryAfter } from './error';
import { parse, stringify } from './json';
import { noteAnswer, noteLimit, noteSilence } from '../live/live';
import { fresh } from './renewal';
import type { components, paths } from './schema.gen';
import { session } from './session';

export type Schemas = components['schemas'];

/** api has a typed method for each operation of the contract; wrap its calls in `answer`. */
export const api = createClient<paths>({
  baseUrl: base,
  bodySerializer: (body) => stringify(body),
  querySerializer: { array: { style: 'form', explode: true } },
});

api.use({
  async onRequest({ request }) {
    await fresh();
    for (const [name, value] of Object.entries(session.headers())) {
      if (!request.headers.has(name)) {
        request.headers.set(name, value);
      }
    }
    return request;
  },
  onResponse({ response }) {
    noteAnswer();
    if (response.status === 429) {
      noteLimit(retryAfter(response));
    }
    return response.ok && response.headers.get('Content-Type')?.startsWith('application/json') ? exact(response) : undefined;
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === 'AbortError') {
      return error; // the page of the request is gone
    }
    noteSilence();
    return noAnswer();
  },
});

/** exact makes openapi-fetch parse a response without a change of its numbers. With a length it calls json(), and else JSON.parse. */
function exact({ body, status, statusText, headers }: Response): Response {
  const same = new Response(body, { status, statusText, headers });
  same.headers.set('Content-Length', '1');
  same.json = async () => parse(await same.text());
  return same;
}

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
    session.close('refused'); // the key was revoked or has expired; the login screen takes over
  }
  const body = typeof error === 'object' && error !== null ? error : {};
  throw new ApiError(response.status, body, retryAfter(response));
}
