import { JobWeaver } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL!, apiKey: process.env.JOBWEAVER_API_KEY });
const log = (message: string) => ({ jobType: "SIMULATION", payload: { steps: [{ type: "LOG", message }] } });
const charge = { type: "FAIL", message: "the card is declined", failAttempts: 1, retryable: false };

// A flow: charge runs when reserve has completed, and report however it ends.
const { flowId } = await jobs.flows.create({
  name: "order 17",
  jobs: {
    reserve: log("reserved"),
    charge: { jobType: "SIMULATION", payload: { steps: [charge] }, after: ["reserve"], tags: ["payments"] },
    ship: { ...log("shipped"), after: ["charge"] },
    report: { ...log("reported"), after: [{ name: "charge", on: "ended" }] },
  },
});
const failed = await jobs.flows.wait(flowId);
console.log(failed.status, failed.jobs.ship?.status, failed.jobs.report?.status);

// The jobs that failed or were cancelled run again, in their order.
console.log(await jobs.flows.retry(flowId));
console.log((await jobs.flows.wait(flowId)).status);

// A batch: jobs join it until it is closed, and another job follows its end.
const batchId = await jobs.batches.create({ jobs: [log("one")], onComplete: log("all done") });
await jobs.submit({ ...log("two"), batchId });
await jobs.batches.close(batchId);
const batch = await jobs.batches.wait(batchId);
console.log(batch.status, batch.total);

// A queue of its own, which is removed once its jobs have ended.
await jobs.queues.create("reports");
await jobs.submit({ ...log("in the queue"), queue: "reports" });
await jobs.queues.remove("reports", { drain: true });
console.log((await jobs.queues.get("reports")).state);
