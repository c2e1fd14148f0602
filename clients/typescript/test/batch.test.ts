import assert from "node:assert/strict";
import { test } from "node:test";

import { type BatchItem, JobWeaver, NotRetryable, RetryAfter } from "../src/index.js";
import { TestJob } from "../src/testing.js";

const jobs = new JobWeaver({ url: "http://none" });

test("a batch handler takes many jobs, and each ends alone", async () => {
  const sizes: number[] = [];
  const embed = jobs.task("embed", {
    batch: {
      max: 3,
      waitMs: 20,
      run: async (items: BatchItem<string>[]) => {
        sizes.push(items.length);
        items.forEach(({ context, payload }) => context.log(payload));
        if (items.some(({ payload }) => payload === "all")) {
          throw new RetryAfter(1_000, "the API is away");
        }
        const outputs = items.map(({ payload }) => (payload === "broken" ? new NotRetryable("it is broken") : { vector: payload.length }));
        return items.some(({ payload }) => payload === "short") ? outputs.slice(1) : outputs;
      },
    },
  });
  const run = async (...payloads: string[]) => {
    const ran = await Promise.all(payloads.map((payload) => new TestJob().next(embed, payload)));
    return ran.map(({ output, error }) => (error ? (error as Error).message : output));
  };
  assert.deepEqual(await run("a", "broken", "ccc"), [{ vector: 1 }, "it is broken", { vector: 3 }]);
  assert.deepEqual(await run("a"), [{ vector: 1 }]);
  assert.deepEqual(await run("all", "b"), ["the API is away", "the API is away"]);
  assert.deepEqual(await run("short", "b"), [{ vector: 1 }, "the batch handler has returned no result for the job"]);
  assert.deepEqual(sizes, [3, 1, 2, 2]);
  sizes.length = 0;
  await run("a", "b", "c", "d");
  assert.deepEqual(sizes, [3, 1]);
  assert.throws(() => jobs.task("two", { run: () => 1, batch: { run: async () => [] } }), /either run or batch/);
});
