import assert from "node:assert/strict";
import { test } from "node:test";

import { CallFailed, JobWeaver, NotRetryable } from "../src/index.js";
import { TestJob } from "../src/testing.js";

const jobs = new JobWeaver({ url: "http://none" });
const pack = jobs.task<{ item: string }, { box: number }>("shop.pack", {});
const sell = jobs.task("shop.sell", {
  run: async ({ order, items }: { order: string; items: string[] }, { step, receive, callAll }) => {
    const charge = await step("charge", () => `charge ${order}`);
    const paid = await receive<{ cents: number }>("shop.paid", { match: { "order.id": order }, timeoutMs: 86_400_000 });
    if (!paid) {
      return { charge, unpaid: true };
    }
    const boxes = await callAll(
      pack,
      items.map((item) => ({ item })),
    );
    return { charge, cents: paid.data.cents, boxes: boxes.map(({ box }) => box) };
  },
});
const order = { order: "17", items: ["a", "b"] };

test("a handler sleeps until its event comes, and gets it also if it came first", async () => {
  const job = new TestJob();
  const first = await job.next(sell, order);
  assert.deepEqual([first.snoozeMs, first.steps.length], [86_400_000, 1]);
  job.events.push({ type: "shop.paid", data: { order: { id: "18" }, cents: 1 } }, { type: "shop.paid", data: { order: { id: "17" }, cents: 900 } });
  const calls: string[] = [];
  job.calls["shop.pack"] = ({ item }) => ({ box: calls.push(item) });
  assert.deepEqual((await job.next(sell, order)).output, { charge: "charge 17", cents: 900, boxes: [1, 2] });
  assert.deepEqual((await job.next(sell, order)).output, { charge: "charge 17", cents: 900, boxes: [1, 2] }); // nothing is called again
  assert.deepEqual(calls, ["a", "b"]);
});

test("a wait that nothing ends is over after its time", async () => {
  assert.deepEqual((await new TestJob().run(sell, order)).output, { charge: "charge 17", unpaid: true });
});

test("a call whose job fails fails the job of the handler, which may catch it", async () => {
  const call = jobs.task("shop.call", { run: async (_: null, { call }) => call(pack, { item: "a" }, { name: "first" }) });
  const job = new TestJob();
  assert.equal((await job.next(call, null)).snoozeMs, 30 * 86_400_000);
  job.calls["shop.pack"] = () => {
    throw new Error("no box");
  };
  const { error } = await job.next(call, null);
  assert.ok(error instanceof CallFailed && error instanceof NotRetryable);
  assert.match(error.message, /^first: job .* is FAILED: TEST.FAILED: no box$/);
  assert.deepEqual(error.result.errorCode, "WORKER.CHILD_FAILED");
});

test("an event is given once, and a name is used once", async () => {
  const twice = jobs.task("shop.twice", {
    run: async (_: null, { receive }) => [
      await receive("shop.paid", { name: "one", timeoutMs: 1_000 }),
      await receive("shop.paid", { name: "two", timeoutMs: 1_000 }),
    ],
  });
  const job = new TestJob();
  job.events.push({ type: "shop.paid", data: 1 });
  const { output } = await job.run(twice, null);
  assert.deepEqual((output as any[]).map((event) => event?.data), [1, undefined]);
  const clash = jobs.task("shop.clash", { run: async (_: null, { step, receive }) => [await step("paid", () => 1), await receive("shop.paid", { name: "paid" })] });
  assert.match(String((await new TestJob().run(clash, null)).error), /two steps of the name paid/);
});
