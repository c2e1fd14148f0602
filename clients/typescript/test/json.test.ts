import assert from "node:assert/strict";
import { test } from "node:test";

import { type Attempt, type AttemptContext, JobWeaver, LosslessNumber, NotRetryable, Webhook, Worker, type WorkerOptions } from "../src/index.js";
import { codecOf, jsonOf } from "../src/json.js";
import { gateway as answering } from "./gateway.js";
import { WorkGateway } from "./workers.js";

const circle: { again?: unknown } = {};
circle.again = [circle];

/** Values without a JSON form, and what is wrong with them. The other kits have the same list for their languages. */
const flawed: [unknown, string][] = [
  [NaN, "output is NaN"],
  [{ x: [1, Infinity] }, "output.x[1] is Infinity"],
  [-Infinity, "output is -Infinity"],
  [{ id: 1970670598291982290n }, "output.id is a BigInt"],
  [circle, "output.again[0] is a cycle"],
  [new Map([[1, 2]]), "output is a Map"],
  [{ tags: new Set([1]) }, "output.tags is a Set"],
  [{ at: new Date(NaN) }, "output.at is an invalid Date"],
  [new Uint8Array(3), "output is a Uint8Array"],
  [{ file: Buffer.from("a") }, "output.file is a Buffer"],
  [new ArrayBuffer(1), "output is a ArrayBuffer"],
  [{ later: Promise.resolve(1) }, "output.later is a Promise"],
  [/a/, "output is a RegExp"],
  [(function* () {})(), "output is a Generator"],
  [new Error("no"), "output is a Error"],
  [() => 1, "output is a function"],
  [[Symbol("a")], "output[0] is a symbol"],
  ["cut \ud83d", "output contains half of a surrogate pair"],
  [{ "a\udc00": 1 }, "output.a\udc00 contains half of a surrogate pair"],
  [{ text: "a\0b" }, "output.text contains the character \\u0000"],
  [{ "a\0": 1 }, "output.a\\0 contains the character \\u0000"],
  [{ toJSON: () => { throw new Error("no form"); } }, "output: Error: no form"], // prettier-ignore
  [{ toJSON: () => ({ x: NaN }) }, "output.x is NaN"],
  [{ n: new LosslessNumber("1.10") }, 'output.n is a LosslessNumber, and the client has not the option numbers: "lossless"'],
];

const kept: unknown[] = [
  null,
  { at: new Date(0), gone: undefined, url: new URL("http://a/"), list: [1, "\u{1F600}", true, [null]], made: Object.create(null) },
  new (class Point {
    x = 1;
  })(),
  "\ud83d\ude00",
  { a: circle.constructor.name, twice: [[flawed.length], [flawed.length]] },
];

test("values that JSON cannot hold are named, and the others are written like JSON.stringify does", () => {
  const codec = codecOf();
  for (const [value, wrong] of flawed) {
    assert.throws(
      () => jsonOf(value, "output", "the output", codec),
      (error) => {
        assert.ok(error instanceof NotRetryable);
        assert.equal(error.message, `the output has no JSON form: ${wrong}`);
        assert.equal(error.result.errorCode, "WORKER.INVALID_OUTPUT");
        return true;
      },
    );
  }
  const shared = { x: 1 };
  for (const value of [...kept, [shared, shared]]) {
    assert.equal(jsonOf(value, "output", "the output", codec), JSON.stringify(value));
  }
});

type Use = (value: unknown, context: AttemptContext) => unknown;
for (const [what, use, bad] of [
  ["an output", (value) => value, { x: NaN }],
  ["a checkpoint", (value, { save }) => save(value), { x: 1n }],
  ["the result of a step", (value, { step }) => step("one", () => value), { x: new Map([[1, 2]]) }],
  ["progress", (value, { progress }) => progress(value as number), NaN],
  ["too large an output", () => "x".repeat(262_143), null],
] as [string, Use, unknown][]) {
  test(`${what} without a JSON form fails the job, and its handler runs once`, async (t) => {
    let runs = 0;
    const { gateway, stop } = start({}, (_, context) => (runs++, use(bad, context)));
    t.after(stop);
    gateway.offer("a");
    await gateway.until(() => gateway.results.length === 1);
    const { message, ...result } = gateway.results[0]!;
    const errorCode = what.startsWith("too") ? "WORKER.OUTPUT_TOO_LARGE" : "WORKER.INVALID_OUTPUT";
    assert.deepEqual(result, { token: "a", status: "FAILED", errorCode, retryable: false });
    assert.match(String(message), / has no JSON form: (output|checkpoint|result|percent).* is |has 262145 bytes/);
    assert.deepEqual([runs, gateway.saves.length], [1, 0]);
  });
}

function start(options: { numbers?: "lossless" }, handler: (attempt: Attempt<any>, context: AttemptContext) => unknown) {
  const gateway = new WorkGateway();
  const client = new JobWeaver({ ...gateway.options, ...options });
  const more: Partial<WorkerOptions> = { heartbeatMs: 5, onError: () => undefined };
  const worker = new Worker(client, { handlers: { A: handler }, ...more });
  const run = worker.run();
  const stop = async () => {
    const stopped = worker.stop();
    client.close();
    await Promise.all([stopped, run]);
  };
  return { gateway, stop };
}

const numbers = '{"id":1970670598291982290,"price":1.10,"size":1E2,"zero":-0,"long":123456789012345678901234567890,"n":7,"d":0.5}';

test('with numbers "lossless" no number changes on its way through a handler', async (t) => {
  const { gateway, stop } = start({ numbers: "lossless" }, async ({ payload, attempt, checkpoint }, { save, step }) => {
    assert.deepEqual([attempt, payload.n, payload.d, String(payload.id), payload.id.valueOf()], [1, 7, 0.5, "1970670598291982290", 1970670598291982290n]);
    assert.ok(payload.price instanceof LosslessNumber && checkpoint instanceof LosslessNumber);
    await save(checkpoint);
    const result = await step("one", () => payload);
    return { ...result, id: payload.id.valueOf() };
  });
  t.after(stop);
  gateway.offerRaw(`{"jobId":"a","traceId":"a","ownerId":null,"tags":null,"attempt":1,"jobType":"A","queue":"pull","callback":null,"token":"a",
    "deadline":"${new Date(Date.now() + 60_000).toISOString()}","checkpoint":1.10,"payload":${numbers}}`);
  await gateway.until(() => gateway.results.length === 1);
  assert.ok(gateway.bodies.some((body) => body.includes(`"checkpoint":1.10}`)), gateway.bodies.join("\n"));
  assert.ok(gateway.bodies.some((body) => body.includes(`"name":"one"`) && body.includes(`"result":${numbers}}`)), gateway.bodies.join("\n"));
  assert.ok(gateway.bodies.some((body) => body.includes(`"output":${numbers}`)));
});

test('with numbers "lossless" get, list, submit and webhooks change no number', async () => {
  const job = `{"jobId":"j","status":"COMPLETED","payload":${numbers},"version":3}`;
  const { options, asked } = answering(
    () => new Response(job, { headers: { "Content-Type": "application/json" } }),
    () => new Response(`{"jobs":[${job}],"nextCursor":null}`),
    () => new Response('{"jobId":"j"}', { status: 202 }),
  );
  const jobs = new JobWeaver({ ...options, numbers: "lossless" });
  const got = await jobs.get("j");
  for await (const { version, ...rest } of jobs.list()) {
    assert.equal(version, 3);
    assert.deepEqual((rest as typeof got).payload, got.payload);
  }
  await jobs.submit({ jobType: "A", payload: got.payload });
  assert.ok(asked[2]!.body.includes(numbers), asked[2]!.body);

  const secret = Buffer.from("k".repeat(32)).toString("base64");
  const at = Math.floor(Date.now() / 1000);
  const { createHmac } = await import("node:crypto");
  const signature = `v1,${createHmac("sha256", "k".repeat(32)).update(`m.${at}.${job}`).digest("base64")}`;
  const headers = { "webhook-id": "m", "webhook-timestamp": String(at), "webhook-signature": signature };
  const ending = new Webhook(`whsec_${secret}`, { numbers: "lossless" }).verify(job, headers);
  assert.deepEqual((ending.job as typeof got).payload, got.payload);
});
