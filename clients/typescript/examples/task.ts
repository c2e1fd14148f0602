import { JobWeaver, Worker } from "@jobweaver/client";
import { z } from "zod";

const jobs = new JobWeaver(); // of JOBWEAVER_URL and JOBWEAVER_API_KEY

const charge = jobs.task("shop.charge", {
  title: "Charge a card",
  payload: z.object({ order: z.string(), cents: z.number().int().min(1) }), // or of valibot or arktype
  maxRetryCount: 5,
  run: async ({ order, cents }, { step }) => {
    const receipt = await step("charge", () => `${cents} cents for order ${order}`); // an attempt after a crash does not charge again
    return { receipt };
  },
});
const pack = jobs.task("shop.pack", { run: ({ item }: { item: string }) => `a box with ${item}` });
const ship = jobs.task("shop.ship", {
  run: ({ receipt, boxes }: { receipt: string; boxes: (string | null)[] }) => `${boxes.length} boxes: ${receipt}`,
});
const list = jobs.task("shop.list", { run: (_order: { order: string }) => ({ items: ["a book", "a pen"] }) });

const worker = new Worker(jobs, { tasks: [charge, pack, ship, list] });
await worker.ready();

// One job: the payload and the output have types.
const { receipt } = await charge.run({ order: "16", cents: 4200 }, { tags: ["vip"] });
console.log(receipt);

// A flow: outputs stand for values that are not known yet.
const flow = jobs.flow({ name: "order 17" });
const listed = flow.add("list", list, { order: "17" });
const charged = flow.add("charge", charge, { order: "17", cents: 900 });
const packed = flow.each("pack", pack, listed.output.items, (item) => ({ item }));
flow.add("ship", ship, { receipt: charged.output.receipt, boxes: packed.output });
const made = await flow.submit();
console.log(await ship.wait(made.jobs.ship!));

await worker.stop();
jobs.close();
