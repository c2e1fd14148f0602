// The TypeScript kit runs no-ops that wait already, and prints the seconds. Arguments: job type, queue, jobs, slots.
import { JobWeaver, Worker } from "../../../clients/typescript/dist/index.js";

const [type, queue, jobs, slots] = process.argv.slice(2);
const client = new JobWeaver({ url: process.env.JOBWEAVER_URL });
let left = Number(jobs);
const begin = performance.now();
const noop = () => {
  if (--left === 0) {
    console.log((performance.now() - begin) / 1000);
    void worker.stop();
  }
};
const worker = new Worker(client, { concurrency: Number(slots), queues: [queue], handlers: { [type]: noop } });
await worker.run();
