import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";

import { ApiError, apiError, isUnreached, RateLimitedError } from "./errors.js";
import type { components } from "./schema.gen.js";
import { backoff, sleep, type Transport } from "./transport.js";

type Schemas = components["schemas"];

/** One event of a stream. A `reload` means that changes were missed: read again what you show. */
export type StreamEvent =
  | { event: "job"; id: string | undefined; data: Schemas["JobSummary"] }
  | { event: "progress"; id: string | undefined; data: Schemas["StreamProgress"] }
  | { event: "log"; id: string | undefined; data: Schemas["StreamLog"] }
  | { event: "stats"; id: string | undefined; data: Schemas["Stats"] }
  | { event: "reload"; id: string | undefined; data: Schemas["StreamReload"] };

const names = new Set<string>(["job", "progress", "log", "stats", "reload"] satisfies StreamEvent["event"][]);

const silence = 45_000; // a gateway sends a comment every 15 s
const awayAtMost = 120_000;

/**
 * The events of a stream. A broken stream is resumed after its last event, until the signal is aborted, the gateway refuses it, or
 * the gateway cannot be reached for two minutes.
 */
export async function* streamEvents(
  transport: Transport,
  url: string,
  headers: Headers,
  own?: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  const signal = transport.signal(own);
  let last: string | undefined;
  let alive = Date.now();
  for (let failed = 0; ; failed++) {
    let retryAfter = 0;
    try {
      for await (const { event, id, data } of connection(transport, url, headers, last, signal)) {
        [alive, last] = [Date.now(), id ?? last];
        if (event !== undefined && names.has(event)) {
          failed = 0;
          yield { event, id, data: transport.codec.parse(data) } as StreamEvent;
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      const refused = error instanceof ApiError && !isUnreached(error) && !(error instanceof RateLimitedError);
      if (refused || Date.now() - alive > awayAtMost) {
        throw error;
      }
      retryAfter = (error instanceof ApiError && error.retryAfterMs) || 0;
    }
    await sleep(Math.max(backoff(failed), retryAfter), signal);
  }
}

/** The events of one connection, until the gateway ends it. A connection without events or comments is an error. */
async function* connection(
  transport: Transport,
  url: string,
  headers: Headers,
  last: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const silent = new AbortController();
  const listen = () => setTimeout(() => silent.abort(), silence);
  let timer = listen();
  const all = new Headers(headers);
  all.set("Accept", "text/event-stream, application/problem+json");
  if (last !== undefined) {
    all.set("Last-Event-ID", last);
  }
  try {
    const response = await transport.open(
      new Request(url, { headers: all, redirect: "manual", signal: AbortSignal.any([signal, silent.signal]) }),
    );
    if (!response.ok || !response.body || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      throw apiError(response, await response.json().catch(() => undefined));
    }
    const alive = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        clearTimeout(timer);
        timer = listen();
        controller.enqueue(chunk);
      },
    });
    const events = response.body
      .pipeThrough(alive)
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
      .pipeThrough(keepPlaces())
      .pipeThrough(new EventSourceParserStream());
    const reader = events.getReader();
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        yield next.value;
      }
    } finally {
      await reader.cancel().catch(() => undefined); // the stream may have failed
    }
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Adds empty data to an event that only has an id. With such an event a quiet stream names the place at which it resumes, but the
 * parser would drop it.
 */
function keepPlaces(): TransformStream<string, string> {
  let rest = "";
  let [id, data] = [false, false];
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line !== "" && line !== "\r") {
          [id, data] = [id || line.startsWith("id:"), data || line.startsWith("data:")];
          controller.enqueue(`${line}\n`);
          continue;
        }
        controller.enqueue(id && !data ? "data:\n\n" : "\n");
        [id, data] = [false, false];
      }
    },
  });
}
