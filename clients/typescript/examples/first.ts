import { JobWeaver, Worker } from "@jobweaver/client";
import { z } from "zod";

const jobs = new JobWeaver();
const charge = jobs.task("first.charge", {
  payload: z.object({ order: z.string(), cents: z.number() }),
  run: ({ order, cents }) => ({ receipt: `${cents} cents for order ${order}` }),
});

const worker = new Worker(jobs, { tasks: [charge] });
await worker.ready();
const { receipt } = await charge.run({ order: "16", cents: 4200 });
console.log(receipt);
await worker.stop();
