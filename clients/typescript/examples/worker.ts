import { setTimeout as sleep } from "node:timers/promises";

import { type Attempt, JobWeaver, NotRetryable, Worker } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL!, apiKey: process.env.JOBWEAVER_API_KEY });

const worker = new Worker(jobs, {
  concurrency: 4,
  queues: ["pull"],
  handlers: {
    RESIZE: async ({ payload }: Attempt<{ width: number }>, { signal, progress, log }) => {
      if (!(payload.width > 0)) {
        throw new NotRetryable("width must be more than 0", { errorCode: "RESIZE.WIDTH" });
      }
      log(`resize to ${payload.width} pixels`);
      for (let percent = 0; percent < 100; percent += 25) {
        progress(percent);
        await sleep(50, undefined, { signal }); // throws when the attempt should end
      }
      return { width: payload.width };
    },
  },
});

for (const name of ["SIGINT", "SIGTERM"]) {
  process.once(name, () => void worker.stop());
}
await worker.run();
