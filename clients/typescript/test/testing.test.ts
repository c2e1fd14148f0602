import assert from "node:assert/strict";
import { test } from "node:test";

import { type AttemptContext, JobWeaver, NotRetryable, WaitForCallback } from "../src/index.js";
import { TestJob } from "../src/testing.js";

const jobs = new JobWeaver({ url: "http://none" });
let charged = 0;
const sell = jobs.task("SELL", {
  run: async ({ order }: { order: string }, { step, sleep, log, progress }) => {
    const receipt = await step("charge", () => `${order}: charge ${++charged}`);
    progress(50, "charged");
    await sleep("cool off", 86_400_000);
    log("shipped", "warn");
    return { receipt };
  },
});

test("a job sleeps in no time, and a step runs once whatever is killed", async () => {
  charged = 0;
  const job = new TestJob();
  job.dieAfterSave = 1;
  const first = await job.next(sell, { order: "17" });
  assert.deepEqual([first.died, first.steps, first.saves, first.attempt, first.output], [true, [{ name: "charge", result: "17: charge 1" }], [], 1, undefined]);
  const second = await job.next(sell, { order: "17" });
  assert.deepEqual([second.snoozeMs, second.progress, second.died], [86_400_000, ["50% charged"], false]);
  const until = new Date(job.now + 86_400_000).toISOString();
  assert.deepEqual(job.steps, [...first.steps, { name: "cool off", until }]);
  const early = await job.next(sell, { order: "17" });
  assert.equal(early.snoozeMs, 86_400_000); // the clock stands still
  job.now += 80_000_000;
  const last = await job.run(sell, { order: "17" });
  assert.deepEqual([last.output, last.log, charged], [{ receipt: "17: charge 1" }, ["warn shipped"], 1]);
});

test("a step whose result is not stored runs again", async () => {
  charged = 0;
  const job = new TestJob();
  job.dieBeforeSave = 1;
  const ran = await job.run(sell, { order: "17" });
  assert.deepEqual([ran.output, ran.attempt], [{ receipt: "17: charge 2" }, 3]);
});

test("a job may die at each of its saves, of a checkpoint, step or sleep", async () => {
  for (const [dieBeforeSave, stored] of [[1, []], [2, ["charge"]], [3, ["charge"]]] as [number, string[]][]) { // prettier-ignore
    charged = 0;
    const job = new TestJob();
    const sellAndSave = jobs.task("SELL", {
      run: async (order: string, { step, save, sleep }) => {
        const receipt = await step("charge", () => `${order}: charge ${++charged}`);
        await save("charged");
        await sleep("cool off", 86_400_000);
        return receipt;
      },
    });
    job.dieBeforeSave = dieBeforeSave;
    const first = await job.next(sellAndSave, "17");
    assert.deepEqual([first.died, first.steps.map(({ name }) => name), first.saves.length], [true, stored, Math.max(0, dieBeforeSave - 2)]);
    const { output } = await job.run(sellAndSave, "17");
    assert.deepEqual([output, charged], [`17: charge ${dieBeforeSave === 1 ? 2 : 1}`, dieBeforeSave === 1 ? 2 : 1]);
  }
});

test("handlers, failures and waits are seen", async () => {
  const job = new TestJob();
  const counted = await job.next(async ({ checkpoint }, { save }) => {
    await save({ at: (checkpoint?.at ?? 0) + 1 });
    return "done";
  }, null);
  assert.deepEqual([counted.output, job.saved, counted.saves], ["done", { at: 1 }, [{ at: 1 }]]);
  const failed = await new TestJob().run(() => Promise.reject(new NotRetryable("no")), null);
  assert.ok(failed.error instanceof NotRetryable);
  assert.equal((await new TestJob().run(() => Promise.reject(new WaitForCallback(5_000)), null)).waitMs, 5_000);
});

test("a handler and a test may change what they get of a step: the stored result stays", async () => {
  const job = new TestJob();
  const order = jobs.task("ORDER", {
    run: async (_: null, { step }) => {
      const one = await step("one", () => {
        job.steps.push({ name: "one", result: { of: "the other attempt" } }); // which overlaps
        return {};
      });
      const two = await step("two", () => ({ count: 1 }));
      return Object.assign(one, two, { count: 2 });
    },
  });
  const ran = await job.next(order, null);
  ran.steps.forEach((step) => Object.assign(step.result as object, { count: 3 }));
  assert.deepEqual(ran.output, { of: "the other attempt", count: 2 });
  assert.deepEqual(job.steps, [{ name: "one", result: { of: "the other attempt" } }, { name: "two", result: { count: 1 } }]);
});

test("a name that the gateway refuses fails the job before anything runs", async () => {
  const names: [string, RegExp][] = [
    ["", /must not be empty: ""/],
    ["é".repeat(201), /must have at most 200 characters/],
    ["a\nb", /must contain neither control characters .*: "a\\nb"/],
    ["a\u0085", /control characters/],
    ["a\ud800", /half of a surrogate pair/],
  ];
  const begins: ((name: string, context: AttemptContext) => unknown)[] = [
    (name, { step }) => step(name, () => assert.fail("it runs")),
    (name, { sleep }) => sleep(name, 1),
    (name, { receive }) => receive("B", { name }),
    (name, { call }) => call(sell, { order: "17" }, { name }),
  ];
  for (const [name, wrong] of names) {
    for (const begin of begins) {
      const { error, steps } = await new TestJob().run((_, context) => begin(name, context), null);
      assert.ok(error instanceof NotRetryable && error.result.errorCode === "API.INVALID_JOB_REQUEST", String(error));
      assert.match(error.message, wrong);
      assert.deepEqual(steps, []);
    }
  }
  const { output } = await new TestJob().run((_, { step }) => step("🦀".repeat(200), () => 7), null);
  assert.equal(output, 7);
});

test("an attempt has the steps that its handler leaves running", async () => {
  const job = new TestJob();
  const slow = () => new Promise((resolve) => setTimeout(() => resolve(7), 20));
  const ran = await job.next((_, { step, sleep }) => Promise.all([step("charge", slow), sleep("cool off", 1_000)]), null);
  assert.deepEqual([ran.snoozeMs, ran.steps.map(({ name, result }) => [name, result])], [1_000, [["cool off", undefined], ["charge", 7]]]);
});
