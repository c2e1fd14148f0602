import { type Attempt, type AttemptContext, JobWeaver, Worker } from "@jobweaver/client";

interface Order {
  id: string;
  cents: number;
}

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL!, apiKey: process.env.JOBWEAVER_API_KEY });

async function sell({ jobId, payload }: Attempt<Order>, { step, sleep, log }: AttemptContext) {
  const receipt = await step("charge", () => charge(payload, `${jobId}/charge`));
  log(`charged with receipt ${receipt}`);
  await sleep("cool off", 24 * 3_600_000); // frees the slot; another attempt goes on here
  await step("ship", () => ship(payload, `${jobId}/ship`));
  return { receipt };
}

/** Calls of outside systems, which know a repeated call by its key. */
const charge = async ({ id }: Order, key: string) => `receipt of ${id}, key ${key}`;
const ship = async ({ id }: Order, key: string) => console.log(`shipped ${id}, key ${key}`);

const worker = new Worker(jobs, { handlers: { ORDER: sell } });
for (const name of ["SIGINT", "SIGTERM"]) {
  process.once(name, () => void worker.stop());
}
await worker.run();
