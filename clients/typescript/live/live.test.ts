// On a gateway, which JOBWEAVER_URL names, in packages as they are published.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { ConflictError, InvalidRequestError, JobEndedError, JobWeaver, NotFoundError } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL! });
const log = { jobType: "SIMULATION", payload: { steps: [{ type: "LOG", message: "hi" }] } };

test("a job is submitted, changed, cancelled, retried and run again", async () => {
  const { jobId } = await jobs.submit({ ...log, delayMs: 3_600_000, tags: ["typescript"] });
  let job = await jobs.get(jobId);
  while (job.version === 0) {
    job = await jobs.get(jobId); // a command that overtakes its job is delayed until the next sweep
  }
  await jobs.change(jobId, { priority: 7 });
  while (job.priority !== 7) {
    job = await jobs.get(jobId);
  }
  await jobs.reschedule(jobId, new Date(Date.now() + 7_200_000)).catch((error: unknown) => assert.ok(error instanceof ConflictError));
  for (let done = false; !done; ) {
    // A change that is not confirmed yet is in the way of the next command.
    done = await jobs.cancel(jobId).then(
      () => true,
      (error: unknown) => !(error instanceof ConflictError),
    );
  }
  assert.equal((await jobs.wait(jobId)).status, "CANCELLED");
  const again = await jobs.runAgain(jobId, { delayMs: 0 });
  assert.equal((await jobs.wait(again.jobId)).runAgainOf, jobId);
  let { logs } = await jobs.logs(again.jobId);
  while (logs.length === 0) {
    ({ logs } = await jobs.logs(again.jobId)); // a job may have ended before its lines are stored
  }
  assert.equal(logs[0]!.text, "hi");
  const found: string[] = [];
  for await (const each of jobs.list({ tag: "typescript" })) {
    found.push(each.jobId);
  }
  assert.ok(found.includes(jobId));
});

test("what is wrong is an error of its type", async () => {
  await assert.rejects(jobs.submit({ jobType: "NO-SUCH-TYPE", payload: {} }), InvalidRequestError);
  await assert.rejects(jobs.get("01936f3e-5f3e-7cc0-8000-0123456789ab"), NotFoundError);
  await assert.rejects(
    jobs.run({ jobType: "SIMULATION", payload: { steps: [{ type: "FAIL", message: "no", retryable: false }] } }),
    JobEndedError,
  );
  const key = { ...log, idempotencyKey: `typescript-${Date.now()}` };
  const first = await jobs.submit(key);
  assert.equal((await jobs.submit(key)).jobId, first.jobId);
  await assert.rejects(jobs.submit({ ...key, priority: 9 }), ConflictError);
});

test("the first program runs", () => {
  const printed = execFileSync(process.execPath, ["build/examples/first.js"], { encoding: "utf8" });
  assert.equal(printed, "4200 cents for order 16\n");
});

test("tasks run alone and in a flow", () => {
  const printed = execFileSync(process.execPath, ["build/examples/task.js"], { encoding: "utf8" });
  assert.equal(printed, "4200 cents for order 16\n2 boxes: 900 cents for order 17\n");
});

test("the quickstart runs", () => {
  const printed = execFileSync(process.execPath, ["build/examples/quickstart.js"], { encoding: "utf8" });
  assert.equal(printed, "COMPLETED\n202 API.INVALID_JOB_REQUEST\nCANCELLED true\n");
});

test("the example of flows, batches and queues runs", () => {
  const printed = execFileSync(process.execPath, ["build/examples/flow.js"], { encoding: "utf8" });
  assert.match(printed, /^FAILED CANCELLED COMPLETED\n2\nCOMPLETED\nCOMPLETED 2\nREMOVING\n$/);
});

test("flows, batches and queues are listed, and cancelled", async () => {
  const later = { ...log, delayMs: 3_600_000 };
  const { flowId } = await jobs.flows.create({ jobs: { only: later } });
  assert.equal((await jobs.flows.get(flowId)).jobs.only?.jobType, "SIMULATION");
  assert.match(await jobs.flows.cancel(flowId), /^[0-9a-f-]{36}$/);
  assert.equal((await jobs.flows.wait(flowId)).status, "CANCELLED");
  const batchId = await jobs.batches.create({ jobs: [later], idempotencyKey: `typescript-batch-${Date.now()}` });
  assert.equal((await jobs.batches.get(batchId)).status, "OPEN");
  await jobs.batches.cancel(batchId);
  assert.equal((await jobs.batches.wait(batchId)).status, "CANCELLED");
  await jobs.batches.retry(batchId);
  const [flows, batches]: string[][] = [[], []];
  for await (const flow of jobs.flows.list({ status: "CANCELLED" })) {
    flows!.push(flow.flowId);
  }
  for await (const batch of jobs.batches.list()) {
    batches!.push(batch.batchId);
  }
  assert.ok(flows!.includes(flowId) && batches!.includes(batchId));
  assert.ok((await jobs.queues.list()).some((queue) => queue.queue === "default" && queue.origin === "setting"));
  await assert.rejects(jobs.queues.remove("default"), ConflictError);
  await assert.rejects(jobs.queues.get("no-such-queue"), NotFoundError);
});

test("types are made of a gateway's job types", () => {
  const made = execFileSync(process.execPath, ["dist/types.js"], { encoding: "utf8" });
  assert.match(made, /"SIMULATION": SimulationPayload;/);
});

test("a webhook reaches the example", async () => {
  const { data } = await jobs.api.GET("/api/webhook-secrets");
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
  const env = { ...process.env, PORT: String(port), WEBHOOK_SECRET: data!.end[0]! };
  const receiver = spawn(process.execPath, ["build/examples/webhook.js"], { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const { jobId } = await jobs.submit({ ...log, callbackUrl: `http://127.0.0.1:${port}/done` });
    for await (const line of createInterface(receiver.stdout)) {
      assert.match(line, new RegExp(`^\\S+ ${jobId} COMPLETED$`));
      break;
    }
  } finally {
    receiver.kill();
  }
});
