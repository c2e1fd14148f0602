// Workers on a gateway, which JOBWEAVER_URL names: it has a queue pull, and the job types RESIZE and TYPESCRIPT.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

import { type AttemptAborted, ConflictError, type Handler, JobWeaver, RetryAfter, Snooze, WaitForCallback, Worker } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL! });
const submit = async (jobType: string, payload: unknown) => (await jobs.submit({ jobType, queue: "pull", payload })).jobId;

test("a worker runs attempts to each of their ends", async () => {
  let started = () => {};
  const starts = new Promise<void>((resolve) => (started = resolve));
  let reason: unknown;
  const handler: Handler<string> = async ({ jobId, attempt, payload, callback }, { signal, progress, log, step, sleep }) => {
    log("a line");
    progress(50, "half");
    if (payload === "retry" && attempt === 1) {
      throw new RetryAfter(1, "not yet", { errorCode: "A.B" });
    }
    if (payload === "snooze" && attempt === 1) {
      throw new Snooze(1);
    }
    if (payload === "steps") {
      const first = await step("once", () => attempt);
      await sleep("nap", 500);
      return { attempt, first };
    }
    if (payload === "callback") {
      const headers = { "Content-Type": "application/json", "X-Callback-Secret": callback!.secret };
      const body = JSON.stringify({ jobId, attempt, status: "COMPLETED", output: "from outside" });
      const called = await fetch(callback!.url, { method: "POST", headers, body });
      assert.ok(called.ok, await called.text());
      throw new WaitForCallback(60_000);
    }
    if (payload === "cancel") {
      started();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))).catch((error) => {
        reason = (error as AttemptAborted).reason;
      });
    }
    return { attempt };
  };
  const worker = new Worker(jobs, { concurrency: 3, queues: ["pull"], handlers: { TYPESCRIPT: handler } });
  const run = worker.run();
  for (const [payload, output, retries] of [
    ["", { attempt: 1 }, 0],
    ["retry", { attempt: 2 }, 1],
    ["snooze", { attempt: 2 }, 0],
    ["steps", { attempt: 2, first: 1 }, 0],
    ["callback", "from outside", 0],
  ] as const) {
    const jobId = await submit("TYPESCRIPT", payload);
    const { status, output: got, retryCount } = await jobs.wait(jobId);
    assert.deepEqual([status, got, retryCount], ["COMPLETED", output, retries], payload);
    for (let lines = 0; lines === 0; ) {
      lines = (await jobs.logs(jobId)).logs.filter(({ text }) => text === "a line").length; // the log may be a moment behind
    }
  }
  const jobId = await submit("TYPESCRIPT", "cancel");
  await starts;
  for (let done = false; !done; ) {
    done = await jobs.cancel(jobId).then(
      () => true,
      (error: unknown) => !(error instanceof ConflictError),
    );
  }
  await jobs.wait(jobId);
  await worker.stop();
  await run;
  assert.equal(reason, "cancelled");
});

test("the example runs jobs until it is stopped", async () => {
  const example = spawn(process.execPath, ["build/examples/worker.js"], { stdio: ["ignore", "inherit", "inherit"] });
  const exit = once(example, "exit");
  try {
    const good = await jobs.wait(await submit("RESIZE", { width: 640 }));
    assert.deepEqual([good.status, good.output], ["COMPLETED", { width: 640 }]);
    const bad = await jobs.wait(await submit("RESIZE", { width: 0 }));
    assert.deepEqual([bad.status, bad.retryCount, bad.lastError?.errorCode], ["FAILED", 0, "RESIZE.WIDTH"]);
    example.kill("SIGTERM");
    assert.deepEqual(await exit, [0, null]);
  } finally {
    example.kill("SIGKILL");
  }
});
