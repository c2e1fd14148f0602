import { setTimeout as pause } from "node:timers/promises";
import { answer, Refusal } from "./serve.js";

// later answers 202, and calls back with the result of f.
export function later(f) {
  return async (request, response, event) => {
    const to = request.headers;
    if (!to["x-callback-url"]) throw new Refusal("FUNCTION.NO_CALLBACK", "there is no X-Callback-Url");
    answer(response, 202);
    return async () => {
      await callBack(to, event, 1, { status: "PROGRESS", progress: { percent: 50, message: "counting" } });
      await callBack(to, event, 6, await outcome(f, event));
    };
  };
}

// outcome makes the body of a callback from the result of a function.
async function outcome(f, event) {
  try {
    return { status: "COMPLETED", output: await f(event) };
  } catch (error) {
    const refused = error instanceof Refusal;
    const errorCode = refused ? error.code : "FUNCTION.FAILED";
    return { status: "FAILED", errorCode, message: error.message, retryable: !refused };
  }
}

// callBack sends a callback about an attempt. If that fails, it repeats the callback after 1, 2, 4 … seconds: a callback
// that arrives twice counts once. Without any callback, the attempt fails at its deadline, and the job is retried.
async function callBack(to, event, tries, callback) {
  const body = JSON.stringify({ ...callback, jobId: event.subject, attempt: Number(event.attempt) });
  for (let number = 0; number < tries; number++) {
    if (number > 0) await pause(1000 * 2 ** (number - 1));
    try {
      return await post(to, body);
    } catch (error) {
      console.warn("callback failed for", event.id, error.message);
    }
  }
}

// post throws if another try may help.
async function post(to, body) {
  const headers = { "Content-Type": "application/json", "X-Callback-Secret": to["x-callback-secret"] ?? "" };
  const response = await fetch(to["x-callback-url"], {
    method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000),
  });
  const reason = await response.text();
  if (response.status >= 500 || response.status === 429) throw new Error(`${response.status}: ${reason}`);
  if (response.status >= 300) console.error("callback refused:", response.status, reason);
}
