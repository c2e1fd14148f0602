import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import {
  type Attempt,
  AttemptAborted,
  type AttemptContext,
  AttemptFailed,
  ForbiddenError,
  type Handler,
  type Handlers,
  JobWeaver,
  NotRetryable,
  RetryAfter,
  Snooze,
  WaitForCallback,
  Worker,
  type WorkerOptions,
} from "../src/index.js";
import { breaks, json } from "./gateway.js";
import { WorkGateway } from "./workers.js";

const unavailable = json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" });
const settled = (status: number, message = "", details: unknown[] = []) =>
  json(200, { results: [{ token: "a", status, error: { errorCode: "API.A", message, details } }] });

/** A worker of jobs of type A, with its own gateway. It is stopped after the test. */
function start(t: TestContext, handler: Handler, options: Partial<WorkerOptions> = {}) {
  const gateway = new WorkGateway();
  const errors: unknown[] = [];
  const onError = (error: unknown) => {
    errors.push(error);
    gateway.changed();
  };
  const client = new JobWeaver(gateway.options);
  const worker = new Worker(client, { handlers: { A: handler }, concurrency: 1, heartbeatMs: 5, graceMs: 0, onError, ...options });
  const run = worker.run();
  run.catch(() => undefined);
  t.after(() => {
    const stopped = worker.stop();
    client.close(); // so that it does not wait for the response to its claim
    return stopped;
  });
  return { gateway, worker, run, errors, client };
}

/** Resolves, or rejects with the signal's reason when it is aborted. */
const aborted = ({ signal }: AttemptContext) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));

test("a handler has the event of its job", async (t) => {
  const seen: (string | number | boolean | undefined)[] = [];
  const { gateway } = start(t, ({ event }: Attempt) => seen.push(event?.subject, event?.n));
  gateway.offer("a", { event: { id: "order-17", subject: "customer-9", n: 7 } });
  gateway.offer("b");
  await gateway.until(() => gateway.results.length === 2);
  assert.deepEqual(seen, ["customer-9", 7, undefined, undefined]);
});

test("a gateway that stands still keeps a worker from claiming for 20 s at most", async (t) => {
  const after = AbortSignal.timeout.bind(AbortSignal);
  let claims = 0;
  t.mock.method(AbortSignal, "timeout", (ms: number) => after(ms === 20_000 && ++claims === 1 ? 1 : ms));
  const { gateway, errors } = start(t, () => undefined);
  await gateway.until(() => errors.length > 0 && gateway.open === 0);
  gateway.offer("a");
  await gateway.until(() => gateway.results.length > 0);
  assert.deepEqual(gateway.claims.map(({ wait }) => wait), ["10000ms", "10000ms"]);
});

test("what a handler returns or throws becomes the result", async (t) => {
  const circle: unknown[] = [];
  circle.push(circle);
  const cases: [() => unknown, object][] = [
    [() => ({ width: 640 }), { status: "COMPLETED", output: { width: 640 } }],
    [() => Promise.resolve(), { status: "COMPLETED" }],
    [() => null, { status: "COMPLETED", output: null }],
    [
      () => circle,
      { status: "FAILED", errorCode: "WORKER.INVALID_OUTPUT", retryable: false, message: /^the output has no JSON form: output\[0\] is a cycle$/ },
    ],
    [() => Promise.reject(new Error("no")), { status: "FAILED", message: /^no$/ }],
    [
      () => {
        throw "a \0 text \ud800"; // eslint-disable-line no-throw-literal
      },
      { status: "FAILED", message: /^a \ufffd text \ufffd$/ },
    ],
    [() => Promise.reject(new AttemptFailed("no", { errorCode: "A.B" })), { status: "FAILED", errorCode: "A.B", message: /^no$/ }],
    [() => Promise.reject(new NotRetryable("no")), { status: "FAILED", retryable: false, message: /^no$/ }],
    [() => Promise.reject(new RetryAfter(1.6, "busy")), { status: "FAILED", retryAfterMs: 2, message: /^busy$/ }],
    [() => Promise.reject(new Snooze(0)), { status: "SNOOZED", delayMs: 1 }],
    [() => Promise.reject(new WaitForCallback(60_000)), { status: "WAITING", callbackTimeoutMs: 60_000 }],
  ];
  const { gateway } = start(t, ({ payload }) => cases[payload as number]![0](), { concurrency: 3, name: "me", queues: ["pull"] });
  cases.forEach((_, i) => gateway.offer(String(i), { payload: i }));
  await gateway.until(() => gateway.results.length === cases.length);
  for (const { token, message, ...result } of gateway.results) {
    const { message: pattern, ...want } = cases[Number(token)]![1] as { message?: RegExp };
    assert.deepEqual(result, want);
    assert.match(String(message ?? ""), pattern ?? /^$/);
  }
  const { slots, ...claim } = gateway.claims[0]!;
  assert.deepEqual(claim, { worker: "me", types: ["A"], queues: ["pull"], wait: "10000ms" });
  assert.ok(slots === 3 && gateway.claims.every((each) => each.slots <= 3));
});

test("no more attempts run than there are slots", async (t) => {
  let [running, most] = [0, 0];
  const ends: (() => void)[] = [];
  const { gateway } = start(
    t,
    async () => {
      most = Math.max(most, ++running);
      gateway.changed();
      await new Promise<void>((resolve) => ends.push(resolve));
      running--;
    },
    { concurrency: 2 },
  );
  ["a", "b", "c", "d", "e"].forEach((id) => gateway.offer(id));
  for (let done = 0; done < 5; done++) {
    await gateway.until(() => ends.length > done);
    ends[done]!();
  }
  await gateway.until(() => gateway.results.length === 5);
  assert.equal(most, 2);
});

for (const [reason, give] of [
  ["cancelled", (gateway: WorkGateway) => gateway.cancelled.push("a")],
  ["lost", (gateway: WorkGateway) => gateway.lost.push("a")],
  ["deadline", () => undefined],
  ["stop", (_: WorkGateway, worker: Worker) => void worker.stop()],
] as const) {
  test(`the signal of an attempt ends with ${reason} as its reason`, async (t) => {
    let seen: unknown;
    const { gateway, worker, run, errors } = start(t, async (attempt, context) => {
      if (attempt.jobId === "a") {
        gateway.changed();
        await aborted(context).catch((error: unknown) => (seen = error));
        gateway.changed();
        throw new Error("ended");
      }
    });
    gateway.offer("a", reason === "deadline" ? { deadline: new Date(Date.now() + 30).toISOString() } : {});
    await gateway.until(() => gateway.heartbeats.length > 0 || seen !== undefined);
    give(gateway, worker);
    await gateway.until(() => seen !== undefined);
    assert.ok(seen instanceof AttemptAborted && seen.reason === reason);
    if (reason === "stop") {
      await run;
      assert.deepEqual(gateway.results, [{ token: "a", status: "SNOOZED", delayMs: 1 }]);
      return;
    }
    gateway.offer("b");
    await gateway.until(() => gateway.results.some(({ token }) => token === "b"));
    const results = gateway.results.filter(({ token }) => token === "a");
    const late = reason === "deadline" ? { errorCode: "WORKER.TIMEOUT" } : {};
    assert.deepEqual(results, reason === "lost" ? [] : [{ token: "a", status: "FAILED", message: "ended", ...late }]);
    assert.deepEqual(errors, []);
  });
}

test("a handler that ignores that its attempt is lost keeps its slot, and its result is not sent", async (t) => {
  let end = () => {};
  let lost = false;
  const { gateway } = start(t, ({ jobId }, { signal }) => {
    signal.addEventListener("abort", () => {
      lost = true;
      gateway.changed();
    });
    return jobId === "a" ? new Promise<void>((resolve) => (end = resolve)) : undefined;
  });
  gateway.offer("a");
  gateway.lost.push("a");
  await gateway.until(() => lost);
  gateway.offer("b");
  const { length } = gateway.claims;
  end();
  await gateway.until(() => gateway.results.length > 0);
  assert.deepEqual(gateway.results.map(({ token }) => token), ["b"]);
  assert.equal(length, 1);
});

test("an attempt without an answered heartbeat for 10 s is lost", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  let reason: unknown;
  const { gateway } = start(t, async (_, context) => {
    await aborted(context).catch((error: AttemptAborted) => (reason = error.reason));
    gateway.changed();
  });
  gateway.offer("a");
  await gateway.until(() => gateway.heartbeats.length > 0);
  gateway.instead.heartbeat = Array.from({ length: 10_000 }, () => unavailable);
  t.mock.timers.setTime(Date.now() + 9_000);
  const { length } = gateway.heartbeats;
  await gateway.until(() => gateway.heartbeats.length > length + 1);
  assert.equal(reason, undefined);
  t.mock.timers.setTime(Date.now() + 2_000);
  await gateway.until(() => reason !== undefined);
  assert.equal(reason, "lost");
});

test("a result is sent again until it is known what became of it", async (t) => {
  const cases: [string, (() => Response | Error)[], number, RegExp | undefined][] = [
    ["503 and then 409", [settled(503), settled(409, "over")], 2, /409: over/],
    ["503 of the gateway", [unavailable], 2, undefined],
    ["a broken connection", [breaks(), breaks()], 3, undefined],
    ["403", [json(403, { errorCode: "API.FORBIDDEN", message: "no" })], 1, /403/],
  ];
  for (const [name, answers, times, error] of cases) {
    await t.test(name, async (t) => {
      const { gateway, errors } = start(t, () => 1);
      gateway.instead.settle = answers;
      gateway.offer("a");
      await gateway.until(() => gateway.open > 0 && gateway.claims.length === 2); // the slot is free again
      assert.deepEqual(gateway.results, Array.from({ length: times }, () => ({ token: "a", status: "COMPLETED", output: 1 })));
      assert.equal(errors.length, error ? 1 : 0);
      assert.match(String(errors[0] ?? ""), error ?? /^$/);
    });
  }
});

test("a result that the gateway cannot use fails the attempt", async (t) => {
  const { gateway, errors } = start(t, () => 1);
  gateway.instead.settle = [settled(400, "invalid result", [{ path: "output", message: "must have at most 262144 bytes" }])];
  gateway.offer("a");
  await gateway.until(() => gateway.results.length === 2);
  const message = "invalid result; output must have at most 262144 bytes";
  assert.deepEqual(gateway.results[1], { token: "a", status: "FAILED", errorCode: "WORKER.INVALID_OUTPUT", message, retryable: false });
  assert.deepEqual(errors, []);
});

test("a message of the gateway that has its details already is not doubled", async (t) => {
  const { gateway } = start(t, () => 1);
  gateway.instead.settle = [settled(400, "invalid result: output too long", [{ path: "output", message: "too long" }])];
  gateway.offer("a");
  await gateway.until(() => gateway.results.length === 2);
  assert.equal(gateway.results[1]!.message, "invalid result: output too long");
});

test("results that come while a request is under way are settled together", async (t) => {
  const { gateway } = start(t, () => 1, { concurrency: 50 });
  for (let i = 0; i < 500; i++) {
    gateway.offer(`j${i}`);
  }
  await gateway.until(() => gateway.results.length === 500);
  assert.ok(gateway.settles.length <= 20 && gateway.claims.length <= 21, `${gateway.settles} of ${gateway.claims.length} claims`);
});

test("a result because of which a whole request is refused does not harm the others", async (t) => {
  const { gateway } = start(t, () => 1, { concurrency: 3 });
  gateway.instead.settle = [json(400, {}), json(413, { errorCode: "API.TOO_LARGE", message: "no" })];
  ["a", "b", "c"].forEach((id) => gateway.offer(id));
  await gateway.until(() => gateway.settles.length === 5);
  assert.deepEqual(gateway.settles, [3, 1, 1, 1, 1]);
  const ends = new Map(gateway.results.map(({ token, status, errorCode }) => [token, errorCode ?? status]));
  assert.deepEqual([...ends.values()], ["WORKER.INVALID_OUTPUT", "COMPLETED", "COMPLETED"]);
});

test("log lines of many attempts arrive in a few heartbeats", async (t) => {
  const { gateway } = start(t, (_, { log }) => log("a line"), { concurrency: 50, heartbeatMs: 60_000 });
  for (let i = 0; i < 50; i++) {
    gateway.offer(`j${i}`);
  }
  await gateway.until(() => gateway.results.length === 50);
  assert.equal(gateway.heartbeats.filter(({ log }) => log!.length > 0).length, 50);
  assert.ok(gateway.heartbeats.length <= 100, `${gateway.heartbeats.length} attempts in heartbeats`);
});

test("no attempt starts while the handler of an earlier one of its job still runs", async (t) => {
  const ends: (() => void)[] = [];
  const { gateway } = start(
    t,
    async ({ attempt }, { signal }) => {
      if (attempt === 1) {
        signal.addEventListener("abort", () => gateway.changed());
        await new Promise<void>((resolve) => ends.push(resolve)); // it ignores its signal
      }
      return attempt;
    },
    { concurrency: 2 },
  );
  gateway.offer("a", { token: "first", deadline: new Date(Date.now() + 10).toISOString() } as never);
  await gateway.until(() => ends.length === 1 && gateway.heartbeats.length > 0);
  gateway.offer("a", { attempt: 2, token: "second" } as never);
  await gateway.until(() => gateway.results.length === 1);
  assert.deepEqual(gateway.results[0], { token: "second", status: "SNOOZED", delayMs: 1_000 });
  assert.match(gateway.heartbeats.find(({ token, log }) => token === "second" && log!.length)!.log![0]!.text, /still runs attempt 1 of this job/);
  ends[0]!();
  await gateway.until(() => gateway.results.length === 2);
  gateway.offer("a", { attempt: 3, token: "third" } as never);
  await gateway.until(() => gateway.results.length === 3);
  assert.deepEqual(gateway.results[2], { token: "third", status: "COMPLETED", output: 3 });
});

test("progress and log lines arrive before the result, in their order", async (t) => {
  const { gateway } = start(
    t,
    (_, { progress, log }) => {
      for (let i = 0; i < 250; i++) {
        log(`line ${i}`, i === 0 ? "warn" : undefined);
      }
      log("é\0".repeat(20_000));
      progress(33.4, "a third");
    },
    { heartbeatMs: 60_000 },
  );
  gateway.instead.heartbeat = [unavailable];
  gateway.offer("a");
  await gateway.until(() => gateway.results.length === 1);
  assert.equal(gateway.heartbeats.length, 1); // the outcome does not wait for a failing heartbeat
  gateway.offer("b");
  await gateway.until(() => gateway.results.length === 2);
  const [first, second] = gateway.heartbeats.slice(1);
  assert.deepEqual([first!.log!.length, second!.log!.length, first!.progress], [200, 51, { percent: 33, message: "a third" }]);
  assert.deepEqual([first!.log![0], second!.log![49]], [{ level: "warn", text: "line 0" }, { level: "info", text: "line 249" }]);
  assert.equal(second!.log![50]!.text, "é\ufffd".repeat(8192));
});

test("a line that the gateway refuses does not hold up the heartbeats", async (t) => {
  const { gateway } = start(t, async (_, context) => {
    context.log("a line");
    await aborted(context);
  });
  gateway.instead.heartbeat = [json(400, {})];
  gateway.offer("a");
  await gateway.until(() => gateway.heartbeats.length > 1);
  assert.deepEqual(gateway.heartbeats.slice(0, 2), [{ token: "a", log: [{ level: "info", text: "a line" }] }, { token: "a", log: [] }]);
});

test("stop ends a claim that is held, and run", async (t) => {
  const { gateway, worker, run } = start(t, () => 1);
  await gateway.until(() => gateway.open === 1);
  await worker.stop();
  await run;
  assert.equal(gateway.open, 0);
});

test("stop lets what runs end within the grace period", async (t) => {
  let end = () => {};
  const { gateway, worker, run } = start(t, () => new Promise<void>((resolve) => (end = resolve)), { graceMs: 60_000 });
  gateway.offer("a");
  await gateway.until(() => gateway.heartbeats.length > 0);
  const stopped = worker.stop();
  const { length } = gateway.heartbeats;
  await gateway.until(() => gateway.heartbeats.length > length); // they go on
  end();
  await Promise.all([stopped, run]);
  assert.deepEqual(gateway.results, [{ token: "a", status: "COMPLETED" }]);
  assert.equal(gateway.claims.length, 1);
});

test("stop waits for a handler that ignores its signal, whose attempt must not start elsewhere", async (t) => {
  let [end, ended] = [() => {}, false];
  const { gateway, run, worker } = start(t, async (_, { signal }) => {
    signal.addEventListener("abort", () => gateway.changed());
    await new Promise<void>((resolve) => (end = resolve));
    return signal.aborted;
  });
  gateway.offer("a");
  await gateway.until(() => gateway.heartbeats.length > 0);
  const stopped = worker.stop().then(() => (ended = true));
  const { length } = gateway.heartbeats;
  await gateway.until(() => gateway.heartbeats.length > length + 2);
  assert.equal(ended, false);
  end();
  await Promise.all([stopped, run]);
  assert.deepEqual(gateway.results, [{ token: "a", status: "COMPLETED", output: true }]);
});

test("an attempt that comes with the last answer to a claim is given back", async (t) => {
  const { gateway, run, worker } = start(t, () => assert.fail("it ran"));
  await gateway.until(() => gateway.open === 1);
  void worker.stop();
  gateway.offer("a");
  await run;
  assert.deepEqual(gateway.results, [{ token: "a", status: "SNOOZED", delayMs: 1 }]);
});

test("claims go on after errors, with pauses, and end where they are refused", async (t) => {
  const { gateway, run, errors } = start(t, () => 1);
  await gateway.until(() => gateway.open === 1);
  gateway.instead.claim = [
    unavailable,
    breaks(),
    json(429, {}),
    () => new Response(null, { status: 204 }),
    json(403, { status: 403, errorCode: "API.FORBIDDEN", message: "no" }),
  ];
  const begin = Date.now();
  gateway.offer("a");
  await assert.rejects(run, ForbiddenError);
  assert.equal(errors.length, 3);
  assert.ok(Date.now() - begin >= 380, "the pauses grow"); // at least 50 + 100 + 200 ms, and 50 after the early answer
});

test("a closed client ends its worker", async (t) => {
  const { gateway, run, client } = start(t, () => 1);
  await gateway.until(() => gateway.open === 1);
  client.close();
  await assert.rejects(run, /the client was closed/);
});

test("a worker needs a handler and slots", () => {
  const client = new JobWeaver({ url: "http://gateway" });
  assert.throws(() => new Worker(client, { handlers: {} }), RangeError);
  for (const concurrency of [0, 501, 1.5]) {
    assert.throws(() => new Worker(client, { handlers: { A: () => 1 }, concurrency }), RangeError);
  }
  assert.notEqual(new Worker(client, { handlers: { A: () => 1 } }).name, new Worker(client, { handlers: { A: () => 1 } }).name);
});

test("a handler has the payload of its job type", () => {
  interface JobTypes {
    EMAIL: { to: string[] };
  }
  const good: Handlers<JobTypes> = { EMAIL: ({ payload }) => payload.to };
  // @ts-expect-error: the type has another payload
  const bad: Handlers<JobTypes> = { EMAIL: ({ payload }) => payload.width as unknown };
  // @ts-expect-error: there is no such type
  const none: Handlers<JobTypes> = { MAIL: () => 1 };
  const any: Handlers = { MAIL: ({ payload }: Attempt<{ to: string }>) => payload.to };
  assert.ok(good && bad && none && any);
});
