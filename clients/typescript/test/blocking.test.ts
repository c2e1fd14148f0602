import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Worker as Thread } from "node:worker_threads";

import { type BlockingHandler, type Handlers, JobWeaver, Worker, type WorkerOptions } from "../src/index.js";
import type { Numbers } from "../src/json.js";
import { json } from "./gateway.js";
import { WorkGateway } from "./workers.js";

const compute: BlockingHandler = { blocking: true, module: new URL("./handlers/compute.js", import.meta.url) };

function start(t: TestContext, options: Partial<WorkerOptions> = {}, numbers: Numbers = "double") {
  const gateway = new WorkGateway();
  const client = new JobWeaver({ ...gateway.options, numbers });
  const more = { heartbeatMs: 50, graceMs: 0, onError: () => undefined, ...options };
  const worker = new Worker(client, { handlers: { A: compute }, concurrency: 2, ...more });
  const run = worker.run();
  t.after(async () => {
    const stopped = worker.stop();
    client.close();
    await Promise.all([stopped, run]);
  });
  return { gateway, worker };
}

test("a blocking handler has all that others have, and each way to end", async (t) => {
  const { gateway } = start(t);
  const cases: [string, object][] = [
    ["report", { status: "COMPLETED", output: { attempt: 1, checkpoint: "own", step: 7 } }],
    ["throw", { status: "FAILED", message: "no luck" }],
    ["never again", { status: "FAILED", errorCode: "A.B", message: "no", retryable: false }],
    ["snooze", { status: "SNOOZED", delayMs: 1_000 }],
    [
      "not JSON",
      {
        status: "FAILED",
        errorCode: "WORKER.INVALID_OUTPUT",
        message: "the output has no JSON form: output is a Map",
        retryable: false,
      },
    ],
    ["exit", { status: "FAILED", message: "the handler has ended its thread" }],
    ["null", { status: "COMPLETED", output: null }],
  ];
  for (const [what, want] of cases) {
    gateway.offer(what, { payload: { do: what }, checkpoint: what === "report" ? "own" : undefined });
    await gateway.until(() => gateway.results.some(({ token }) => token === what));
    assert.deepEqual(gateway.results.find(({ token }) => token === what), { token: what, ...want });
  }
  const heartbeats = gateway.heartbeats.filter(({ token, log }) => token === "report" && log!.length > 0);
  assert.deepEqual([heartbeats[0]!.log, heartbeats[0]!.progress], [[{ level: "warn", text: "a line" }], { percent: 50, message: "half" }]);
  assert.deepEqual(gateway.saves.map(({ checkpoint }) => checkpoint), [{ page: 1 }]);
  assert.deepEqual(gateway.stepSaves.map(({ token, name, result }) => [token, name, result]), [["report", "one", 7]]);
  assert.equal(gateway.stepReads.length, 0);
  gateway.offer("again", { payload: { do: "report" }, attempt: 2 });
  await gateway.until(() => gateway.results.some(({ token }) => token === "again"));
  assert.deepEqual([gateway.stepReads, gateway.stepSaves.length], [[null], 1]);
});

test("blocking handlers hold up neither the event loop nor each other, and one that should end is terminated", async (t) => {
  const { gateway } = start(t);
  const begin = Date.now();
  gateway.offer("long", { payload: { do: "block", ms: 600_000 }, deadline: new Date(begin + 300).toISOString() });
  await gateway.until(() => gateway.heartbeats.length > 3);
  gateway.offer("short", { payload: { do: "block", ms: 10 } });
  await gateway.until(() => gateway.results.some(({ token }) => token === "short"));
  assert.ok(!gateway.results.some(({ token }) => token === "long"));
  await gateway.until(() => gateway.results.length === 2);
  const message = "the attempt should end: deadline";
  assert.deepEqual(gateway.results[1], { token: "long", status: "FAILED", message, errorCode: "WORKER.TIMEOUT" });
});

test("a blocking handler that awaits sees the signal of its attempt", async (t) => {
  const { gateway } = start(t);
  gateway.offer("a", { payload: { do: "wait" } });
  await gateway.until(() => gateway.heartbeats.length > 0);
  gateway.cancelled.push("a");
  await gateway.until(() => gateway.results.length === 1);
  assert.deepEqual(gateway.results[0], { token: "a", status: "FAILED", message: "the attempt should end: cancelled" });
});

test("an attempt of a blocking handler ends after the steps that the handler leaves running", async (t) => {
  const { gateway } = start(t);
  gateway.offer("a", { payload: { do: "beside" } });
  await gateway.until(() => gateway.results.length === 1);
  assert.deepEqual(gateway.results[0], { token: "a", status: "SNOOZED", delayMs: 60_000 });
  assert.deepEqual(gateway.stepSaves.map(({ name }) => name), ["cool off", "slow"]);
});

test("the result of a step is saved though its thread is terminated meanwhile", async (t) => {
  const { gateway } = start(t);
  const begin = Date.now();
  const away = json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" });
  const answer = () => {
    if (Date.now() < begin + 5_500) {
      gateway.instead.steps!.push(answer);
    }
    return away();
  };
  gateway.instead.steps!.push(answer);
  gateway.offer("a", { payload: { do: "outlive" }, deadline: new Date(begin + 100).toISOString() });
  await gateway.until(() => gateway.results.length === 1);
  assert.equal(gateway.results[0]!.errorCode, "WORKER.TIMEOUT");
  assert.deepEqual(gateway.steps.get("charge"), { name: "charge", result: 7, until: null });
});

test('with numbers "lossless" no number of a call or a wait of a blocking handler changes', async (t) => {
  const { gateway } = start(t, {}, "lossless");
  for (const what of ["call", "receive"]) {
    gateway.instead.wait!.push(json(200, { delayMs: 1_000, waits: [] }));
    const ids = `"token":"${what}","jobId":"${what}","traceId":"${what}","ownerId":null,"tags":null,"callback":null`;
    const deadline = new Date(Date.now() + 60_000).toISOString();
    gateway.offerRaw(`{${ids},"attempt":1,"jobType":"A","queue":"pull","deadline":"${deadline}","payload":{"do":"${what}","id":12345678901234567890}}`);
    await gateway.until(() => gateway.results.some(({ token }) => token === what));
    assert.deepEqual(gateway.results.at(-1), { token: what, status: "SNOOZED", delayMs: 1_000 });
    const asked = gateway.bodies.find((body) => body.includes(`"token":"${what}"`) && body.includes('"waits"'));
    assert.match(asked!, /"id":12345678901234567890[,}]/);
  }
});

/** A gateway in a thread, which answers while the event loop of the test stands still. */
const server = `
const { parentPort: main } = require("node:worker_threads");
const offered = [], waiting = [], seen = { claims: 0, heartbeats: [], results: [], given: [] };
const give = () => { while (waiting.length > 0 && offered.length > 0) { const attempts = offered.splice(0, 10); seen.given.push(...attempts); waiting.shift()({ attempts }); } };
require("node:http").createServer((request, response) => {
  let text = "";
  request.on("data", (part) => (text += part)).on("end", () => {
    const what = request.url.split("/").at(-1), body = JSON.parse(text);
    const answer = (value) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(value));
    if (what === "claim") {
      seen.claims++;
      waiting.push(answer);
      response.on("close", () => waiting.includes(answer) && waiting.splice(waiting.indexOf(answer), 1));
      give();
    } else if (what === "heartbeat") {
      seen.heartbeats.push(...body.attempts.map(({ token }) => [token, Date.now()]));
      answer({ lost: [], cancelled: [] });
    } else {
      seen.results.push(...body.results);
      answer({ results: body.results.map(({ token }) => ({ token, status: 200 })) });
    }
  });
}).listen(0, "127.0.0.1", function () { main.postMessage(this.address().port); });
main.on("message", (message) => message === "seen" ? main.postMessage(seen) : setTimeout(() => { offered.push(message.offer); give(); }, message.afterMs));
`;

test("a handler that blocks the event loop loses neither itself nor its neighbours, and is named once", async (t) => {
  const thread = new Thread(server, { eval: true });
  const next = () => new Promise<any>((resolve) => thread.once("message", resolve));
  const url = `http://127.0.0.1:${await next()}`;
  const deadline = new Date(Date.now() + 60_000).toISOString();
  const offer = (token: string, jobType: string, afterMs = 0) => {
    const ids = { token, jobId: token, traceId: token, ownerId: null, tags: null, callback: null, queue: "pull" };
    thread.postMessage({ offer: { ...ids, attempt: 1, jobType, payload: {}, deadline }, afterMs });
  };
  const blocked: [number, number][] = [];
  const ends: string[] = [];
  let started = () => {};
  const neighbour = new Promise<void>((resolve) => (started = resolve));
  const handlers: Handlers = {
    BLOCK: ({ jobId }) => {
      const begin = Date.now();
      while (Date.now() < begin + 4_500);
      blocked.push([begin, Date.now()]);
      ends.push(jobId);
    },
    NEIGHBOUR: async ({ jobId }) => {
      started();
      await new Promise((resolve) => setTimeout(resolve, 100));
      ends.push(jobId);
    },
  };
  const warnings: string[] = [];
  const client = new JobWeaver({ url });
  const worker = new Worker(client, { handlers, heartbeatMs: 400, concurrency: 5, onError: (error) => warnings.push(String(error)) });
  const run = worker.run();
  offer("neighbour", "NEIGHBOUR");
  await neighbour;
  offer("block", "BLOCK");
  offer("claimed meanwhile", "NEIGHBOUR", 4_000);
  let seen: { heartbeats: [string, number][]; results: { token: string; status: string }[]; given: { token: string }[] };
  do {
    thread.postMessage("seen");
    seen = await next();
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (seen.results.length < 3);
  await worker.stop();
  await run;
  await thread.terminate();
  for (const token of ["neighbour", "block"]) {
    const within = seen.heartbeats.filter(([of, at]) => of === token && at > blocked[0]![0] && at < blocked[0]![1]);
    assert.ok(within.length >= 4, `${within.length} heartbeats of ${token} while the event loop stood still`);
  }
  assert.deepEqual(ends.sort(), ["block", "claimed meanwhile", "neighbour"]);
  assert.ok(seen.results.every(({ status }) => status === "COMPLETED"));
  assert.deepEqual(warnings.length, 1, warnings.join("\n"));
  assert.match(warnings[0]!, /stood still for [45] s: the handler of BLOCK blocks it; give it a thread of its own with blocking: true/);
  void t;
});
