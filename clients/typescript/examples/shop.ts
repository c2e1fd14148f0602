// The worker of a shop. Kill it at any moment: each sale goes on where it was, and reserves its stock once.
import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { JobWeaver, NotRetryable, Worker } from "@jobweaver/client";
import { z } from "zod";

const jobs = new JobWeaver(); // of JOBWEAVER_URL and JOBWEAVER_API_KEY
const ledger = process.env.LEDGER ?? "ledger.txt"; // stands for the systems that the shop calls

const pack = jobs.task("shop.ts.pack", { run: ({ item }: { item: string }) => `a box with ${item}` });

// A mail provider takes many mails at once.
const mail = jobs.task("shop.ts.mail", {
  payload: z.object({ to: z.string(), text: z.string() }),
  batch: {
    max: 50,
    run: async (items) => {
      appendFileSync(ledger, items.map(({ payload }) => `mailed ${payload.to}\n`).join(""));
      return items.map(({ payload }) => `mailed ${payload.to}`);
    },
  },
});

const sell = jobs.task("shop.ts.sell", {
  payload: z.object({ order: z.string(), to: z.string(), items: z.array(z.string()) }),
  run: async ({ order, to, items }, { step, receive, call, callAll }) => {
    await step("reserve", () => appendFileSync(ledger, `reserved ${order}\n`));
    await step("print", async () => {
      appendFileSync(ledger, `prints ${order}\n`);
      await pause(2_000); // a worker that is killed here has not stored the step: the next one prints again
    });
    const paid = await receive<{ cents: number }>("com.shop.paid", { match: { order }, timeoutMs: 7 * 86_400_000 });
    if (!paid) {
      throw new NotRetryable(`order ${order} was not paid in time`, { errorCode: "SHOP.UNPAID" });
    }
    const boxes = await callAll(
      pack,
      items.map((item) => ({ item })),
    );
    const mailed = await call(mail, { to, text: `${boxes.length} boxes for ${paid.data.cents} cents` });
    return { boxes, mailed };
  },
});

const worker = new Worker(jobs, { tasks: [sell, pack, mail] });
process.once("SIGTERM", () => void worker.stop());
await worker.run();
jobs.close();
