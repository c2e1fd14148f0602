import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folder = process.env.RECEIPTS || "receipts";

// once returns the result of the first attempt of a job that had one. Here a file keeps it; in your database, a row with the
// job's id as its key, written in the transaction of the work.
export async function once(jobId, work) {
  const path = join(folder, `${jobId}.json`);
  try {
    return JSON.parse(await readFile(path));
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  const draft = `${path}.${randomUUID()}`;
  await mkdir(folder, { recursive: true });
  await writeFile(draft, JSON.stringify(await work()));
  await link(draft, path).catch((error) => {
    if (error.code !== "EEXIST") throw error; // another attempt was faster: its result counts
  });
  await rm(draft);
  return JSON.parse(await readFile(path));
}
