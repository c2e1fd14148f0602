import { ConflictError, hasEnded, JobWeaver } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL!, apiKey: process.env.JOBWEAVER_API_KEY });
const hello = { jobType: "SIMULATION", payload: { steps: [{ type: "LOG", message: "hi" }] }, tags: ["quickstart"] };

// Run it in an hour.
const { jobId } = await jobs.submit({ ...hello, delayMs: 3_600_000 });

// Submit and wait. A second submit with the same key would return this job.
const job = await jobs.run({ ...hello, idempotencyKey: `hello-${Date.now()}` });
console.log(job.status);

// Many at once: each has its own result.
const [first, second] = await jobs.submitBatch([hello, { jobType: "NO-SUCH-TYPE", payload: {} }]);
if (first && "jobId" in first && second && "error" in second) {
  console.log(first.status, second.error.errorCode);

  // Follow a job as it changes.
  for await (const event of jobs.stream({ jobId: first.jobId })) {
    if (event.event === "job" && hasEnded(event.data)) {
      break;
    }
  }
}

// A waiting job can be changed and cancelled; an ended one cannot.
await jobs.cancel(jobId);
const ended = await jobs.wait(jobId);
const again = await jobs.cancel(jobId).catch((error: unknown) => error);
console.log(ended.status, again instanceof ConflictError);
