// The thread of a Line. Why: docs/decisions/workers.md#worker-kits-send-heartbeats-from-a-thread-and-run-a-job-once-at-a-time
import { parentPort, workerData } from "node:worker_threads";

import type { Keeping, News, Order, Sent } from "./line.js";

const { alive, url, headers, worker, heartbeatMs, stillMs } = workerData as Keeping;
const main = parentPort!;
const inHand = new Set<string>();
const open = new Map<number, { abort: AbortController; claim: boolean }>();
const news = (one: News) => main.postMessage(one);

main.on("message", (order: Order) => {
  if ("send" in order) {
    void send(order.send);
  } else if ("abort" in order) {
    open.get(order.abort)?.abort.abort();
  } else {
    inHand.delete(order.over);
  }
});

async function send({ id, url, method, headers, body }: Sent): Promise<void> {
  const abort = new AbortController();
  const claim = url.endsWith("/api/workers/claim");
  open.set(id, { abort, claim });
  try {
    const response = await fetch(url, { method, headers, body, redirect: "manual", signal: abort.signal });
    const text = await response.text();
    if (claim && response.status === 200) {
      const { attempts } = JSON.parse(text) as { attempts: { token: string }[] };
      attempts.forEach(({ token }) => inHand.add(token)); // before the worker knows: its event loop may stand still
    }
    news({ id, status: response.status, headers: [...response.headers], text });
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error & { code?: string } };
    if (claim && abort.signal.aborted) {
      news({ id, status: 204, headers: [], text: "" });
    } else {
      news({ id, failed: cause?.message ?? message, code: cause?.code });
    }
  } finally {
    open.delete(id);
  }
}

let last = -1;
let turnedAt = performance.now();
let lastSentAt = -Infinity;

setInterval(() => {
  const now = performance.now();
  const turns = Atomics.load(alive, 0);
  if (turns !== last) {
    [last, turnedAt, lastSentAt] = [turns, now, -Infinity];
  } else if (now - turnedAt >= stillMs) {
    open.forEach(({ abort, claim }) => claim && abort.abort());
    if (now - lastSentAt >= heartbeatMs && inHand.size > 0) {
      lastSentAt = now;
      void heartbeat([...inHand]);
    }
  }
}, 100);

/** A heartbeat without progress and log lines, which the worker sends when its event loop turns again. */
async function heartbeat(tokens: string[]): Promise<void> {
  const sentAt = Date.now();
  try {
    const body = JSON.stringify({ worker, attempts: tokens.map((token) => ({ token })) });
    const signal = AbortSignal.timeout(5_000);
    const response = await fetch(`${url}/api/workers/heartbeat`, {
      method: "POST", headers: [...headers, ["Content-Type", "application/json"]], body, signal, redirect: "manual",
    });
    if (!response.ok) {
      throw new Error(`status ${response.status}`);
    }
    const answer = (await response.json()) as { lost: string[]; cancelled: string[] };
    answer.lost.forEach((token) => inHand.delete(token));
    news({ answer, tokens, sentAt });
  } catch {
    lastSentAt = performance.now() - heartbeatMs + Math.min(heartbeatMs, 500); // again soon
  }
}
