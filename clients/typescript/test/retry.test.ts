import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { ConflictError, ConnectionError, JobEndedError, JobWeaver, NotFoundError, RateLimitedError, UnavailableError } from "../src/index.js";
import { accepted, breaks, gateway, json, never } from "./gateway.js";

const job = { jobType: "A", payload: 1 };
const away = json(503, { status: 503, errorCode: "API.UNAVAILABLE", message: "away" });

test("a job that ended as FAILED is an error that is printed without the whole job", async () => {
  const ended = { jobId: "j1", status: "FAILED", lastError: { errorCode: "A.B", message: "no" }, logs: ["a line of the log"] };
  const client = new JobWeaver(gateway(accepted, json(200, ended)).options);
  await assert.rejects(client.run(job), (error: unknown) => {
    assert.ok(error instanceof JobEndedError);
    assert.equal(error.message, "job j1 is FAILED: A.B: no");
    assert.equal(error.job.jobId, "j1");
    assert.doesNotMatch(inspect(error), /a line of the log/);
    return true;
  });
});

test("a request is repeated only where that does nothing twice", async (t) => {
  const submit = (c: JobWeaver) => c.submit(job);
  const cancel = (c: JobWeaver) => c.cancel("j1");
  const get = (c: JobWeaver) => c.get("j1");
  const cases: [string, (c: JobWeaver) => Promise<unknown>, () => Response | Error, number][] = [
    ["a submit whose answer is lost", submit, breaks(), 2],
    ["a batch whose answer is lost", (c) => c.submitBatch([job]), breaks(), 2],
    ["running again, when the answer is lost", (c) => c.runAgain("j1"), breaks(), 2],
    ["a submit to a gateway without its database", submit, away, 2],
    ["a submit that is wrong", submit, json(400, {}), 1],
    ["a submit that came too often", submit, json(429, {}, { "Retry-After": "0" }), 2],
    ["a submit that came too often, by RateLimit", submit, json(429, {}, { RateLimit: '"jobs";r=0;t=0' }), 2],
    ["a submit that came too often, without knowing when", submit, json(429, {}), 1],
    ["a submit that came too often, for an hour", submit, json(429, {}, { "Retry-After": "3600" }), 1],
    ["a request that reads", get, breaks(), 2],
    ["a request that reads, of a broken gateway", get, json(500, {}), 1],
    ["a command whose answer is lost", cancel, breaks(), 1],
    ["a command without a connection", cancel, breaks("ECONNREFUSED"), 2],
    ["a command that was not read", cancel, json(408, {}), 2],
    ["a command to a gateway that cannot answer", cancel, away, 1],
  ];
  for (const [name, call, first, times] of cases) {
    await t.test(name, async () => {
      const { options, asked } = gateway(first, json(200, { jobId: "j1", results: [] }));
      await call(new JobWeaver(options)).catch((error: unknown) => assert.equal(times, 1, String(error)));
      assert.equal(asked.length, times);
      assert.equal(asked[0]!.headers.get("Authorization"), "Bearer the key");
    });
  }
});

test("a repeated submit keeps its key, and each job has one", async () => {
  const { options, asked } = gateway(breaks(), away, accepted);
  const client = new JobWeaver(options);
  assert.equal((await client.submit(job)).jobId, "j1");
  await client.submit(job);
  await client.submit({ ...job, idempotencyKey: "mine" });
  await client.submit({ ...job, jobId: "019aa5d0-8f5e-7cc0-8000-000000000001" });
  const bodies = asked.map((r) => JSON.parse(r.body) as { idempotencyKey?: string });
  assert.equal(asked[0]!.body, asked[1]!.body);
  assert.equal(asked[0]!.body, asked[2]!.body);
  assert.match(bodies[0]!.idempotencyKey!, /^[0-9a-f-]{36}$/);
  assert.notEqual(bodies[3]!.idempotencyKey, bodies[0]!.idempotencyKey);
  assert.equal(bodies[4]!.idempotencyKey, "mine");
  assert.equal(bodies[5]!.idempotencyKey, undefined);
});

test("a retry of a flow has what runs again", async () => {
  const { options, asked } = gateway(json(202, { flowId: "f1", jobs: 3 }));
  const client = new JobWeaver(options);
  assert.equal(await client.flows.retry("f1"), 3);
  await client.flows.retry("f1", { from: ["pack"] });
  await client.flows.retry("f1", { all: true });
  assert.deepEqual(
    asked.map((r) => (r.body === "" ? null : JSON.parse(r.body))),
    [null, { from: ["pack"] }, { all: true }],
  );
});

test("a repeated flow or batch keeps its key", async () => {
  const { options, asked } = gateway(breaks(), json(201, { flowId: "f1", jobs: {} }), breaks(), json(201, { batchId: "b1" }));
  const client = new JobWeaver(options);
  await client.flows.create({ jobs: { only: job } });
  await client.batches.create({ jobs: [job] });
  const keys = asked.map((r) => (JSON.parse(r.body) as { idempotencyKey: string }).idempotencyKey);
  assert.equal(keys.length, 4);
  assert.ok(keys[0] && keys[2] && keys[0] === keys[1] && keys[2] === keys[3] && keys[0] !== keys[2]);
});

test("a batch is sent by the thousand, with its keys", async () => {
  const results = (n: number) => json(200, { results: Array.from({ length: n }, () => ({ status: 202, jobId: "j" })) });
  const { options, asked } = gateway(results(1000), results(1));
  const jobs = Array.from({ length: 1001 }, () => job);
  assert.equal((await new JobWeaver(options).submitBatch(jobs)).length, 1001);
  const sent = JSON.parse(asked[0]!.body) as { jobs: { idempotencyKey: string }[] };
  assert.equal(new Set(sent.jobs.map((j) => j.idempotencyKey)).size, 1000);
  assert.equal(asked.length, 2);
});

test("tries end", async () => {
  const { options, asked } = gateway(breaks());
  await assert.rejects(new JobWeaver({ ...options, retries: 2 }).get("j1"), ConnectionError);
  assert.equal(asked.length, 3);
  const broken = gateway(away);
  await assert.rejects(new JobWeaver({ ...broken.options, retries: 0 }).get("j1"), UnavailableError);
  assert.equal(broken.asked.length, 1);
});

test("where nothing is left, the next request waits until there is again", async () => {
  const { options, asked } = gateway(json(202, { jobId: "j1" }, { RateLimit: '"requests";r=3;t=1, "jobs";r=0;t=1' }), accepted);
  const client = new JobWeaver(options);
  await client.submit(job);
  await client.submit(job);
  assert.ok(asked[1]!.at >= 990, `the next job was sent after ${asked[1]!.at} ms`);
});

test("a request that reads need not wait for the limit of jobs", { timeout: 30_000 }, async () => {
  const { options, asked } = gateway(json(202, { jobId: "j1" }, { RateLimit: '"requests";r=3;t=60, "jobs";r=0;t=60' }), accepted);
  const client = new JobWeaver(options);
  await client.submit(job);
  await client.get("j1");
  assert.equal(asked.length, 2);
});

test("an aborted signal and a closed client end everything at once", async () => {
  for (const first of [never, json(429, {}, { "Retry-After": "20" }), json(503, {}, { "Retry-After": "20" })]) {
    const stop = new AbortController();
    const own = gateway(first);
    const call = new JobWeaver(own.options).get("j1", { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    await assert.rejects(call, { name: "AbortError" });

    const closed = new JobWeaver(gateway(first).options);
    const wait = closed.wait("j1");
    const stream = closed.stream({ jobId: "j1" }).next();
    setTimeout(() => closed.close(), 20);
    await assert.rejects(wait, /closed/);
    await assert.rejects(stream, /closed/);
    await assert.rejects(closed.get("j1"), /closed/);
  }
});

test("a request times out", async () => {
  const { options, asked } = gateway(never);
  await assert.rejects(new JobWeaver({ ...options, timeoutMs: 20, retries: 1 }).get("j1"), ConnectionError);
  assert.equal(asked.length, 2);
});

test("errors are types, with their problem details", async () => {
  const details = [{ path: "priority", message: "must be from 0 to 9" }];
  const body = { status: 404, errorCode: "API.JOB_NOT_FOUND", message: "no job", jobId: "j1", traceId: "t1", details };
  const { options, asked } = gateway(json(404, body, { "Content-Type": "application/problem+json" }));
  await assert.rejects(new JobWeaver(options).get("j1"), (error: unknown) => {
    assert.ok(error instanceof NotFoundError);
    const { status, errorCode, jobId, traceId, message } = error;
    assert.deepEqual({ status, errorCode, jobId, traceId }, { status: 404, errorCode: "API.JOB_NOT_FOUND", jobId: "j1", traceId: "t1" });
    assert.equal(message, "404 API.JOB_NOT_FOUND: no job");
    assert.deepEqual(error.details, details);
    return true;
  });
  assert.match(asked[0]!.headers.get("Accept")!, /application\/problem\+json/);
  await assert.rejects(new JobWeaver(gateway(json(409, "<html>")).options).cancel("a/b"), ConflictError);
  await assert.rejects(new JobWeaver(gateway(json(429, null)).options).cancel("a"), RateLimitedError);
});

test("a redirect is an error and not followed", async () => {
  const { options, asked } = gateway(() => new Response(null, { status: 307, headers: { Location: "http://elsewhere/" } }));
  await assert.rejects(new JobWeaver(options).submit(job), /307/);
  assert.equal(asked.length, 1);
});

test("waiting goes on through a restart", async () => {
  const running = json(200, { jobId: "j1", status: "RUNNING" });
  const { options, asked } = gateway(running, breaks(), away, running, json(200, { jobId: "j1", status: "FAILED", lastError: null }));
  const ended = await new JobWeaver({ ...options, retries: 0 }).wait("j1");
  assert.equal(ended.status, "FAILED");
  assert.equal(asked.length, 5);
  assert.equal(asked[0]!.url.search, "?wait=30s");
  const failing = gateway(accepted, json(200, { jobId: "j1", status: "FAILED", lastError: { errorCode: "X", message: "no" } }));
  await assert.rejects(new JobWeaver(failing.options).run(job), /job j1 is FAILED: X: no/);
});

test("a list goes from page to page", async () => {
  const page = (id: string, nextCursor: string | null) => json(200, { jobs: [{ jobId: id }], nextCursor });
  const { options, asked } = gateway(page("a", "next"), page("b", null));
  const seen: string[] = [];
  for await (const { jobId } of new JobWeaver(options).list({ status: ["FAILED", "CANCELLED"] })) {
    seen.push(jobId);
  }
  assert.deepEqual(seen, ["a", "b"]);
  assert.equal(asked[1]!.url.search, "?status=FAILED&status=CANCELLED&limit=200&cursor=next");
});
