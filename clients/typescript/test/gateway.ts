import type { Options } from "../src/index.js";

export interface Asked {
  method: string;
  url: URL;
  headers: Headers;
  body: string;
  at: number;
}

type Answer = Response | Error | ((signal: AbortSignal) => Promise<Response>);

/** A gateway without a network: it returns the given responses in turn, the last one repeatedly, and records the requests. */
export function gateway(...answers: (() => Answer)[]): { options: Options; asked: Asked[] } {
  const asked: Asked[] = [];
  const begin = Date.now();
  const answerTo = async (request: Request, init?: RequestInit): Promise<Response> => {
    const { method, headers } = request;
    asked.push({ method, url: new URL(request.url), headers, body: await request.text(), at: Date.now() - begin });
    const answer = answers[Math.min(asked.length, answers.length) - 1]!();
    if (answer instanceof Error) {
      throw answer;
    }
    return typeof answer === "function" ? answer(init?.signal ?? request.signal) : answer;
  };
  return { asked, options: { url: "http://gateway/", apiKey: "the key", fetch: answerTo } };
}

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });

/** The connection breaks; with ECONNREFUSED there was no connection. */
export const breaks =
  (code = "ECONNRESET") =>
  () =>
    new TypeError("fetch failed", { cause: Object.assign(new Error("the connection"), { code }) });

export const accepted = json(202, { jobId: "j1", traceId: "t1", status: "PENDING" });

/** Fails when the request is aborted, and never answers. The timer stands for the socket, which keeps a process alive. */
export const never = () => (signal: AbortSignal) =>
  new Promise<Response>((_, reject) => {
    const socket = setTimeout(() => reject(new Error("the request was not aborted")), 60_000);
    signal.addEventListener("abort", () => {
      clearTimeout(socket);
      reject(signal.reason as Error);
    });
  });
