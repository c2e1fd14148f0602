import assert from "node:assert/strict";
import { test } from "node:test";

import { JobWeaver, orElse } from "../src/index.js";
import { gateway, json } from "./gateway.js";

const { options, asked } = gateway(json(202, { flowId: "f1", jobs: {} }));
const jobs = new JobWeaver(options);
const reserve = jobs.task<{ order: string }, { total: number; items: { sku: string; "full name": string }[] }>("RESERVE");
const charge = jobs.task<{ cents: number; memo?: string }, { receipt: string }>("CHARGE", { maxRetryCount: 5, unique: { by: "payload" } as never });
const pack = jobs.task<{ sku: string; n: number }, number>("PACK");
const ship = jobs.task<{ receipt: string; boxes: (number | null)[]; note: string }, void>("SHIP");

test("a flow in code has the references and conditions of its jobs", async () => {
  const flow = jobs.flow({ name: "order 17" });
  const reserved = flow.add("reserve", reserve, { order: "17" });
  const charged = flow.add("charge", charge, { cents: reserved.output.total, memo: "m" }, { tags: ["vip"] });
  const packed = flow.each("pack", pack, reserved.output.items, (item, n) => ({ sku: item.sku, n }));
  flow.add("ship", ship, {
    receipt: charged.output.receipt,
    boxes: packed.output,
    note: orElse(reserved.output.items[0]!["full name"], "none"),
  });
  flow.add("refund", charge, { cents: -1 }, { after: [charged.failed, packed.ended, reserved] });
  await flow.submit();
  const at = { queue: "pull" };
  assert.deepEqual(JSON.parse(asked[0]!.body).jobs, {
    reserve: { ...at, jobType: "RESERVE", payload: { order: "17" } },
    charge: {
      ...at,
      maxRetryCount: 5,
      tags: ["vip"],
      jobType: "CHARGE",
      payload: { cents: { $output: "reserve", path: "$.total" }, memo: "m" },
      after: ["reserve"],
    },
    pack: {
      ...at,
      jobType: "PACK",
      payload: { sku: { $item: "value", path: "$.sku" }, n: { $item: "index" } },
      after: ["reserve"],
      forEach: { $output: "reserve", path: "$.items" },
    },
    ship: {
      ...at,
      jobType: "SHIP",
      payload: {
        receipt: { $output: "charge", path: "$.receipt" },
        boxes: { $output: "pack" },
        note: { $output: "reserve", path: "$.items[0]['full name']", default: "none" },
      },
      after: ["charge", "pack", "reserve"],
    },
    refund: {
      ...at,
      maxRetryCount: 5,
      jobType: "CHARGE",
      payload: { cents: -1 },
      after: [{ name: "charge", on: "failed" }, { name: "pack", on: "ended" }, "reserve"],
    },
  });
});

test("a wrong flow does not compile, or throws before it is submitted", () => {
  const flow = jobs.flow();
  const reserved = flow.add("reserve", reserve, { order: "17" });
  // @ts-expect-error: the output has no such member
  flow.add("a", charge, { cents: reserved.output.totl });
  // @ts-expect-error: the member is a text
  flow.add("b", charge, { cents: reserved.output.items[0]!.sku });
  // @ts-expect-error: a member is missing
  flow.add("c", pack, { sku: "x" });
  // @ts-expect-error: it is no array
  flow.each("d", pack, reserved.output.total, () => ({ sku: "x", n: 1 }));
  assert.throws(() => flow.add("reserve", reserve, { order: "18" }), /two jobs reserve/);
  const other = jobs.flow();
  assert.throws(() => other.add("charge", charge, { cents: reserved.output.total }), /charge comes after reserve, which is not a job of this flow/);
  assert.throws(() => other.each("pack", pack, [] as never, () => ({ sku: "x", n: 1 })), /must be in the output of a job/);
});
