import { setTimeout as pause } from "node:timers/promises";
import { answer, Refusal } from "./serve.js";

// later answers 202, and calls back with what f makes of the event.
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

// outcome is what became of an event, in a callback's words.
async function outcome(f, event) {
  try {
    return { status: "COMPLETED", output: await f(event) };
  } catch (error) {
    const refused = error instanceof Refusal;
    const errorCode = refused ? error.code : "FUNCTION.FAILED";
    return { status: "FAILED", errorCode, message: error.message, retryable: !refused };
  }
}

// callBack says a word about an attempt, and again after 1, 2, 4 … seconds where it was not heard: a word that
// comes twice counts once. Not heard at all, the attempt fails at its deadline, and the job's retries are for that.
async function callBack(to, event, tries, word) {
  const body = JSON.stringify({ ...word, jobId: event.subject, attempt: Number(event.attempt) });
  for (let number = 0; number < tries; number++) {
    if (number > 0) await pause(1000 * 2 ** (number - 1));
    try {
      return await post(to, body);
    } catch (error) {
      console.warn("nobody heard a callback for", event.id, error.message);
    }
  }
}

// post throws where trying again may help.
async function post(to, body) {
  const headers = { "Content-Type": "application/json", "X-Callback-Secret": to["x-callback-secret"] ?? "" };
  const response = await fetch(to["x-callback-url"], {
    method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000),
  });
  const said = await response.text();
  if (response.status >= 500 || response.status === 429) throw new Error(`${response.status}: ${said}`);
  if (response.status >= 300) console.error("a callback is refused for good:", response.status, said);
}
