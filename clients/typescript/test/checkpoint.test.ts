import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { AttemptAborted, type AttemptContext, type Handler, JobWeaver, NotRetryable, Worker } from "../src/index.js";
import { json } from "./gateway.js";
import { WorkGateway } from "./workers.js";

const answered = (status: number, message = "") =>
  json(200, { results: [{ token: "a", status, error: { errorCode: "API.A", message, details: [] } }] });

/** Runs attempt after attempt of a job, each with the checkpoint of the last one, and returns how each has ended. */
async function run(t: TestContext, handler: Handler, attempts: number, gateway = new WorkGateway(), first = 1) {
  const client = new JobWeaver(gateway.options);
  const worker = new Worker(client, { handlers: { A: handler }, heartbeatMs: 5, onError: () => undefined });
  const running = worker.run();
  for (let n = 1; n <= attempts; n++) {
    gateway.offer("a", { attempt: first + n - 1, checkpoint: gateway.saves.at(-1)?.checkpoint });
    await gateway.until(() => gateway.results.length === n);
  }
  t.after(() => {
    const stopped = worker.stop();
    client.close();
    return stopped.then(() => running);
  });
  return gateway;
}

test("a handler goes on from its checkpoint", async (t) => {
  const handler: Handler = async ({ attempt, checkpoint }, { save }) => {
    for (let page: number = checkpoint?.page ?? 0; page < 4; ) {
      await save({ page: ++page });
      if (attempt === 1 && page === 2) {
        throw new Error("it dies");
      }
    }
    return checkpoint;
  };
  const { results, saves } = await run(t, handler, 2);
  assert.deepEqual(
    saves.map(({ number, checkpoint }) => [number, checkpoint.page]),
    [[1, 1], [2, 2], [1, 3], [2, 4]], // prettier-ignore
  );
  assert.deepEqual(results[1], { token: "a", status: "COMPLETED", output: { page: 2 } });
});

test("a step runs once, and one that fails is not remembered", async (t) => {
  const calls: string[] = [];
  const handler: Handler = async ({ attempt, checkpoint }, { save, step }) => {
    const id = await step("charge", () => {
      calls.push("charge");
      return { id: 7, at: new Date(0) };
    });
    assert.deepEqual(id, { id: 7, at: "1970-01-01T00:00:00.000Z" });
    assert.equal(checkpoint, attempt === 1 ? undefined : "own");
    await save("own");
    const [none, side] = await Promise.all([step("none", () => calls.push("none") && undefined), step("side", () => "by side")]);
    assert.deepEqual([none ?? null, side], [null, "by side"]);
    await step(`of attempt ${attempt}`, () => calls.push("changed code"));
    await step("mail", () => {
      calls.push("mail");
      if (attempt < 3) {
        throw new Error("no");
      }
    }).catch((error: unknown) => {
      if (attempt === 1) {
        return step("mail", () => calls.push("mail again") && Promise.reject(error as Error));
      }
      throw error;
    });
  };
  const { results, saves, stepSaves, stepReads } = await run(t, handler, 3);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["FAILED", "FAILED", "COMPLETED"],
  );
  assert.deepEqual(calls, ["charge", "none", "changed code", "mail", "mail again", "changed code", "mail", "changed code", "mail"]);
  assert.deepEqual(
    stepSaves.map(({ name, result }) => [name, result]),
    [
      ["charge", { id: 7, at: "1970-01-01T00:00:00.000Z" }],
      ["none", null],
      ["side", "by side"],
      ["of attempt 1", 3],
      ["of attempt 2", 6],
      ["of attempt 3", 8],
      ["mail", null],
    ],
  );
  assert.ok(stepSaves.every(({ token, until, tookMs }) => token === "a" && until === undefined && Number.isInteger(tookMs)));
  assert.deepEqual(stepReads, [null, null]); // not in attempt 1
  assert.deepEqual(saves.map(({ checkpoint }) => checkpoint), ["own", "own", "own"]);
});

test("a sleep snoozes until its instant", async (t) => {
  const after: true[] = [];
  const handler: Handler = async (_, { sleep }) => {
    await sleep("no time", 0);
    await sleep("cool off", 60_000);
    after.push(true);
  };
  const gateway = await run(t, handler, 2);
  const [first, second] = gateway.results;
  assert.ok(first!.status === "SNOOZED" && first!.delayMs === 60_000 && second!.status === "SNOOZED", JSON.stringify(gateway.results));
  assert.ok((second!.delayMs as number) <= 60_000);
  assert.deepEqual(
    gateway.stepSaves.map(({ name, result, tookMs }) => [name, result, tookMs]),
    [["cool off", undefined, undefined]], // prettier-ignore
  );
  assert.equal(after.length, 0);
  gateway.steps.set("cool off", { name: "cool off", result: null, until: new Date(Date.now() - 1).toISOString() });
  gateway.offer("a", { attempt: 3 });
  await gateway.until(() => gateway.results.length === 3);
  assert.deepEqual([gateway.results[2]!.status, after.length], ["COMPLETED", 1]);
});

test("steps are read page by page, and a read and a save are repeated until they are answered", async (t) => {
  const gateway = new WorkGateway();
  gateway.stepPage = 2;
  for (const name of ["a", "b", "c", "d", "e"]) {
    gateway.steps.set(name, { name, result: name.toUpperCase(), until: null });
  }
  const away = json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" });
  gateway.instead["steps/read"]!.push(away, () => new Error("the connection"));
  gateway.instead.steps!.push(away, () => new Error("the connection"));
  let calls = 0;
  const handler: Handler = async (_, { step }) => Promise.all(["a", "c", "e", "f"].map((name) => step(name, () => ++calls)));
  const { results, stepReads, stepSaves } = await run(t, handler, 1, gateway, 2);
  assert.deepEqual(results[0], { token: "a", status: "COMPLETED", output: ["A", "C", "E", 1] });
  assert.deepEqual(stepReads, [null, null, null, "b", "d"]);
  assert.deepEqual(stepSaves.map(({ name, result }) => [name, result]), [["f", 1], ["f", 1], ["f", 1]]); // prettier-ignore
});

test("of two attempts that overlap the first save counts", async (t) => {
  const gateway = new WorkGateway();
  const handler: Handler = async (_, { step }) =>
    step("charge", () => {
      gateway.steps.set("charge", { name: "charge", result: "of the other attempt", until: null });
      return "mine";
    });
  const { results } = await run(t, handler, 1, gateway);
  assert.deepEqual(results[0], { token: "a", status: "COMPLETED", output: "of the other attempt" });
});

test("what cannot be kept fails the job", async (t) => {
  const large = "é".repeat(40_000);
  const circle: unknown[] = [];
  circle.push(circle);
  const refused = json(400, { status: 400, errorCode: "API.INVALID_JOB_REQUEST", message: "steps: a job has at most 1000" });
  const cases: [(context: AttemptContext) => Promise<unknown>, string, RegExp][] = [
    [({ save }) => save(large), "WORKER.CHECKPOINT_TOO_LARGE", /80002 bytes/],
    [({ step }) => step("a", () => large.repeat(4)), "WORKER.OUTPUT_TOO_LARGE", /step a has run.* 320002 bytes cannot be kept.*"ééé/],
    [({ save }) => save(circle), "WORKER.INVALID_OUTPUT", /no JSON form/],
    [({ step }) => step("a", () => 1n), "WORKER.INVALID_OUTPUT", /the result of step a/],
    [async ({ step }) => [await step("a", () => 1), await step("a", () => 1)], "WORKER.STEP_REPEATED", /two steps of the name a/],
    [({ step }) => step("slept", () => 1), "WORKER.STEP_REPEATED", /slept is a step in one attempt of the job and a sleep in another/],
    [({ sleep }) => sleep("ran", 1), "WORKER.STEP_REPEATED", /ran is a step in one attempt of the job and a sleep in another/],
    [({ step }) => step("refused", () => 7), "API.INVALID_JOB_REQUEST", /step refused has run.*at most 1000.*begins with 7/],
  ];
  for (const [handle, errorCode, message] of cases) {
    const gateway = new WorkGateway();
    gateway.steps.set("slept", { name: "slept", result: null, until: new Date().toISOString() });
    gateway.steps.set("ran", { name: "ran", result: 1, until: null });
    if (errorCode.startsWith("API.")) {
      gateway.instead.steps!.push(refused);
    }
    const { results } = await run(t, (_, context) => handle(context), 1, gateway);
    assert.deepEqual([results[0]!.status, results[0]!.errorCode, results[0]!.retryable], ["FAILED", errorCode, false]);
    assert.match(results[0]!.message as string, message);
  }
});

test("an attempt that is over saves no step", async () => {
  const gateway = new WorkGateway();
  gateway.instead.steps!.push(json(409, { status: 409, errorCode: "API.ATTEMPT_OVER", message: "over" }));
  let seen: unknown;
  const client = new JobWeaver(gateway.options);
  const handler: Handler = async (_, { step, signal }) => {
    seen = await step("a", () => 1).catch((error: unknown) => error);
    assert.ok(signal.aborted);
    gateway.changed();
  };
  const worker = new Worker(client, { handlers: { A: handler } });
  const running = worker.run();
  gateway.offer("a");
  await gateway.until(() => seen !== undefined);
  assert.ok(seen instanceof AttemptAborted && seen.reason === "lost");
  const stopped = worker.stop();
  client.close();
  await stopped;
  await running;
  assert.deepEqual([gateway.results.length, gateway.steps.size], [0, 0]);
});

test("a save is repeated until it is stored, and an attempt that is over saves nothing", async (t) => {
  const gateway = new WorkGateway();
  gateway.instead.checkpoint!.push(answered(503), () => new Error("the connection"), answered(200));
  const { results, saves } = await run(t, (_, { save }) => save(1), 1, gateway);
  assert.equal(results[0]!.status, "COMPLETED");
  assert.deepEqual(
    saves.map(({ number }) => number),
    [1, 1, 1],
  );

  const late = new WorkGateway();
  late.instead.checkpoint!.push(answered(409));
  let seen: unknown;
  const client = new JobWeaver(late.options);
  const handler: Handler = async (_, { save, signal }) => {
    seen = await save(1).catch((error: unknown) => error);
    assert.ok(signal.aborted);
    late.changed();
  };
  const worker = new Worker(client, { handlers: { A: handler } });
  const running = worker.run();
  late.offer("a");
  await late.until(() => seen !== undefined);
  assert.ok(seen instanceof AttemptAborted && seen.reason === "lost");
  const stopped = worker.stop();
  client.close();
  await stopped;
  await running;
  assert.equal(late.results.length, 0);

  const refusing = new WorkGateway();
  refusing.instead.checkpoint!.push(answered(400, "duplicate names"));
  const refused = await run(t, (_, { save }) => save(1), 1, refusing);
  assert.match(refused.results[0]!.message as string, /cannot be stored: duplicate names/);
});

test("a handler may save when its worker stops", async () => {
  const gateway = new WorkGateway();
  const client = new JobWeaver(gateway.options);
  const handler: Handler = async (_, { save, signal }) => {
    gateway.changed();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    await save("so far");
    signal.throwIfAborted();
  };
  const worker = new Worker(client, { handlers: { A: handler }, graceMs: 0, heartbeatMs: 5 });
  const running = worker.run();
  gateway.offer("a");
  await gateway.until(() => gateway.heartbeats.length > 0);
  const stopped = worker.stop();
  await gateway.until(() => gateway.results.length > 0);
  client.close();
  await stopped;
  await running;
  assert.deepEqual(gateway.saves, [{ token: "a", number: 1, checkpoint: "so far" }]);
  assert.deepEqual(gateway.results, [{ token: "a", status: "SNOOZED", delayMs: 1 }]);
});

const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

for (const [how, beside] of [
  ["sleeps", ({ sleep }: AttemptContext) => sleep("cool off", 60_000)],
  ["fails", ({ step }: AttemptContext) => step("fail", () => Promise.reject(new NotRetryable("no")))],
] as const) {
  test(`an attempt whose handler ${how} ends after the steps that run beside`, async (t) => {
    const calls: string[] = [];
    const gateway = new WorkGateway();
    gateway.instead.steps!.push(...(how === "fails" ? [json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" })] : []));
    const handler: Handler = async (_, context) => {
      const charge = async () => {
        await context.step("charge", async () => {
          calls.push("charge");
          await delay(100);
          assert.deepEqual(gateway.results, []);
        });
        await context.step("mail", () => calls.push("mail")); // does not begin
      };
      await Promise.all([charge(), beside(context)]);
    };
    const { results, steps } = await run(t, handler, 1, gateway);
    assert.equal(results[0]!.status, how === "sleeps" ? "SNOOZED" : "FAILED");
    assert.deepEqual([calls, [...steps.keys()].filter((name) => name !== "cool off")], [["charge"], ["charge"]]);
  });
}

test("a step that runs on sees the signal of its attempt, and a lost attempt waits for no step", async (t) => {
  const ends: string[] = [];
  const handler: Handler = async ({ payload }, { signal, step, sleep }) => {
    const patient = step("patient", async () => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      ends.push((signal.reason as AttemptAborted).reason);
      gateway.changed();
      await (payload === "deaf" ? new Promise(() => undefined) : undefined);
    });
    await Promise.all([patient, sleep("cool off", 60_000)]);
  };
  const gateway = await run(t, handler, 0);
  gateway.offer("late", { deadline: new Date(Date.now() + 200).toISOString() });
  await gateway.until(() => gateway.results.length === 1);
  assert.deepEqual([gateway.results[0]!.status, ends, gateway.steps.has("patient")], ["SNOOZED", ["deadline"], true]);
  gateway.offer("deaf", { payload: "deaf" });
  gateway.lost.push("deaf");
  await gateway.until(() => ends.length === 2);
  gateway.lost.pop();
  gateway.offer("again", { jobId: "deaf", payload: "", deadline: new Date(Date.now() + 200).toISOString() });
  await gateway.until(() => gateway.results.length === 2);
  assert.deepEqual([ends, gateway.results[1]!.token], [["deadline", "lost", "deadline"], "deaf"]);
});
