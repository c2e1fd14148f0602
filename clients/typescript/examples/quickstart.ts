import { ConflictError, hasEnded, JobWeaver } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL!, apiKey: process.env.JOBWEAVER_API_KEY });
const hello = { jobType: "SIMULATION", payload: { steps: [{ type: "LOG", message: "hi" }] }, tags: ["quickstart"] };

// For in an hour.
const { jobId } = await jobs.submit({ ...hello, delayMs: 3_600_000 });

// Submit and wait. The same key again would be the same job.
const job = await jobs.run({ ...hello, idempotencyKey: `hello-${Date.now()}` });
console.log(job.status);

// Many at once: each has a result of its own.
const [first, second] = await jobs.submitBatch([hello, { jobType: "NO-SUCH-TYPE", payload: {} }]);
if (first && "jobId" in first && second && "error" in second) {
  console.log(first.status, second.error.errorCode);

  // Follow one as it happens.
  for await (const event of jobs.stream({ jobId: first.jobId })) {
    if (event.event === "job" && hasEnded(event.data)) {
      break;
    }
  }
}

// A job that waits can be changed and cancelled; one that has ended cannot.
await jobs.cancel(jobId);
const ended = await jobs.wait(jobId);
const again = await jobs.cancel(jobId).catch((error: unknown) => error);
console.log(ended.status, again instanceof ConflictError);
