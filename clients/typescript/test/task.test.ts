import assert from "node:assert/strict";
import { test } from "node:test";

import { z } from "zod";

import { JobEndedError, JobWeaver, Worker } from "../src/index.js";
import { accepted, gateway, json } from "./gateway.js";
import { WorkGateway } from "./workers.js";

const Charge = z.object({ orderId: z.string(), cents: z.number().int().min(1), currency: z.string().default("EUR") });
const Receipt = z.object({ receipt: z.string() });

const ended = (status: string, output: unknown) => json(200, { jobId: "j1", status, output });

test("a task submits typed jobs with its defaults", async () => {
  const { options, asked } = gateway(accepted);
  const charge = new JobWeaver(options).task("CHARGE", { payload: Charge, maxRetryCount: 5, tags: ["shop"], title: "Charge a card" });
  await charge.submit({ orderId: "o1", cents: 5 }, { priority: 7, tags: ["vip"], idempotencyKey: "o1" });
  // @ts-expect-error: cents is a number
  await charge.submit({ orderId: "o1", cents: "5" }, { queue: "billing" });
  const [first, second] = asked.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  assert.deepEqual(first, {
    queue: "pull",
    maxRetryCount: 5,
    tags: ["vip"],
    priority: 7,
    idempotencyKey: "o1",
    jobType: "CHARGE",
    payload: { orderId: "o1", cents: 5 },
  });
  assert.equal(second!.queue, "billing");
  assert.ok(second!.idempotencyKey);
});

test("run and wait return the output of the task, or throw", async () => {
  const done = gateway(accepted, ended("COMPLETED", { receipt: "r1" }));
  const charge = new JobWeaver(done.options).task("CHARGE", { payload: Charge, output: Receipt });
  const { receipt } = await charge.run({ orderId: "o1", cents: 5 });
  // @ts-expect-error: the output has no such member
  (await charge.wait("j1")).total satisfies unknown;
  assert.equal(receipt, "r1");

  const failed = new JobWeaver(gateway(accepted, ended("FAILED", null)).options).task<{ n: number }, string>("COUNT");
  await assert.rejects(failed.run({ n: 1 }), JobEndedError);
  await assert.rejects(failed.wait("j1"), JobEndedError);
});

test("submitAll sends all payloads together", async () => {
  const { options, asked } = gateway(json(200, { results: [{ status: 202, jobId: "j1" }, { status: 202, jobId: "j2" }] }));
  const count = new JobWeaver(options).task<{ n: number }>("COUNT");
  assert.equal((await count.submitAll([{ n: 1 }, { n: 2 }])).length, 2);
  const { jobs } = JSON.parse(asked[0]!.body) as { jobs: { payload: { n: number } }[] };
  assert.deepEqual(jobs.map(({ payload }) => payload.n), [1, 2]);
});

test("a worker describes its tasks and runs them with the payload that their schema makes", async (t) => {
  const at = new WorkGateway();
  const jobs = new JobWeaver(at.options);
  const seen: unknown[] = [];
  const charge = jobs.task("CHARGE", {
    title: "Charge a card",
    payload: Charge,
    output: Receipt,
    schedules: [{ name: "nightly", cron: "30 2 * * *", timeZone: "Europe/Berlin", payload: { orderId: "all", cents: 1 } }],
    run: ({ orderId, currency }, { log }, { attempt }) => {
      log(`charge ${orderId}`);
      seen.push([currency satisfies string, attempt]);
      return { receipt: `r-${orderId}` };
    },
  });
  const plain = jobs.task("PLAIN", { run: ({ n }: { n: number }) => n + 1 });
  at.instead.describe!.push(json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" }));
  const errors: unknown[] = [];
  const worker = new Worker(jobs, { tasks: [charge, plain], concurrency: 1, heartbeatMs: 5, onError: (error) => errors.push(error) });
  const run = worker.run();
  run.catch(() => undefined);
  t.after(() => {
    const stopped = worker.stop();
    jobs.close();
    return stopped;
  });
  at.offer("a", { jobType: "CHARGE", payload: { orderId: "o1", cents: 5 } });
  at.offer("b", { jobType: "CHARGE", payload: { orderId: "o1", cents: 0, lines: [] } });
  at.offer("c", { jobType: "PLAIN", payload: { n: 1 } });
  await at.until(() => at.results.length === 3);

  assert.deepEqual(at.described.map(([type]) => type), ["CHARGE", "CHARGE", "CHARGE/schedules", "PLAIN", "PLAIN/schedules"]);
  const definition = at.described[1]![1] as { title: string; schema: any; outputSchema: any };
  assert.equal(definition.title, "Charge a card");
  assert.deepEqual(definition.schema.required, ["orderId", "cents"]);
  assert.equal(definition.outputSchema.properties.receipt.type, "string");
  const job = { queue: "pull", jobType: "CHARGE", payload: { orderId: "all", cents: 1 } };
  assert.deepEqual(at.described[2]![1], { schedules: [{ name: "nightly", cron: "30 2 * * *", timeZone: "Europe/Berlin", job }] });
  assert.deepEqual(at.described[3]![1], {});
  assert.deepEqual(at.described[4]![1], { schedules: [] });
  assert.deepEqual(errors, []);
  assert.deepEqual(seen, [["EUR", 1]]);
  const [good, bad, counted] = at.results;
  assert.deepEqual(good!.output, { receipt: "r-o1" });
  assert.equal(bad!.errorCode, "WORKER.INVALID_PAYLOAD");
  assert.match(bad!.message as string, /^payload\.cents: /);
  assert.equal(bad!.retryable, false);
  assert.equal(counted!.output, 2);
});

test("a worker refuses a task that it cannot run, and a type of two handlers", () => {
  const jobs = new JobWeaver({ url: "http://gateway" });
  assert.throws(() => new Worker(jobs, { tasks: [jobs.task("CHARGE")] }), /CHARGE has no function to run/);
  const once = jobs.task("ONCE", { run: () => 1 });
  assert.throws(() => new Worker(jobs, { tasks: [once], handlers: { ONCE: () => 1 } }), /two handlers/);
});

test("a client has its address and its key from the environment", async (t) => {
  process.env.JOBWEAVER_URL = "http://from-env/";
  process.env.JOBWEAVER_API_KEY = "env-key";
  t.after(() => {
    delete process.env.JOBWEAVER_URL;
    delete process.env.JOBWEAVER_API_KEY;
  });
  const { options, asked } = gateway(accepted);
  await new JobWeaver({ fetch: options.fetch }).submit({ jobType: "A", payload: 1 });
  assert.equal(asked[0]!.url.host, "from-env");
  assert.equal(asked[0]!.headers.get("Authorization"), "Bearer env-key");
});
