// Schedules, controls, operations and what else an installation has, on a gateway, which JOBWEAVER_URL names.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ConflictError, JobWeaver, NotFoundError } from "@jobweaver/client";

const jobs = new JobWeaver({ url: process.env.JOBWEAVER_URL! });
const log = { jobType: "SIMULATION", payload: { steps: [{ type: "LOG", message: "hi" }] } };
const ownerId = `typescript-${Date.now()}`;
const later = { ...log, delayMs: 3_600_000 };

async function all<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const entry of entries) {
    read.push(entry);
  }
  return read;
}

test("a schedule is created, paused, resumed, run and deleted", async () => {
  const schedules = jobs.schedules.of("typescript");
  const made = await schedules.create({ name: "typescript", cron: "@yearly", timeZone: "Europe/Berlin", job: log });
  assert.deepEqual([made.ownerId, made.overlap, made.upcoming.length], ["typescript", "allow", 5]);
  await assert.rejects(schedules.create({ name: "typescript", cron: "@yearly", job: log }), ConflictError);
  assert.equal((await schedules.pause("typescript")).nextAt, null);
  assert.equal((await schedules.resume("typescript")).paused, false);
  const { jobId } = await schedules.run("typescript");
  assert.equal((await jobs.wait(jobId)).status, "COMPLETED");
  assert.equal((await schedules.set("typescript", { cron: "@daily", overlap: "skip", job: log })).cron, "@daily");
  assert.equal((await schedules.get("typescript")).overlap, "skip");
  assert.deepEqual((await all(schedules.list())).map(({ name }) => name), ["typescript"]);
  assert.ok(Array.isArray(await all(schedules.ticks("typescript"))));
  await schedules.delete("typescript");
  await assert.rejects(schedules.get("typescript"), NotFoundError);
  assert.equal((await jobs.schedules.times({ cron: "@hourly" })).length, 5);
});

test("a queue is paused and limited", async () => {
  await jobs.queues.create("typescript-slow");
  await jobs.controls.set("queue", "typescript-slow", { maxRunning: 1, startsPerSecond: 2.5 });
  assert.equal((await jobs.controls.pause("queue", "typescript-slow")).maxRunning, 1);
  const { jobId } = await jobs.submit({ ...log, queue: "typescript-slow", fairnessKey: "typescript/1" });
  let shares = await all(jobs.queues.shares("typescript-slow", { q: "SCRIPT/1" }));
  while (shares.length === 0) {
    shares = await all(jobs.queues.shares("typescript-slow", { q: "SCRIPT/1" })); // they are a second old
  }
  assert.deepEqual([shares[0]!.waiting, shares[0]!.weight], [1, 1]);
  assert.equal((await jobs.controls.resume("queue", "typescript-slow")).paused, false);
  assert.equal((await jobs.wait(jobId)).status, "COMPLETED");
  assert.equal((await jobs.controls.set("fairnessKey", "typescript/1", { weight: 7 })).weight, 7);
  assert.ok((await jobs.controls.list()).some(({ kind, name }) => kind === "fairnessKey" && name === "typescript/1"));
  await jobs.controls.delete("fairnessKey", "typescript/1");
  await jobs.controls.delete("queue", "typescript-slow");
  assert.deepEqual((await jobs.controls.get("fairnessKey", "typescript/1")).weight, 1);
  await jobs.queues.remove("typescript-slow", { drain: true });
});

test("an operation reaches the jobs of a filter", async () => {
  const tags = ["typescript-operation"];
  await jobs.submitBatch([{ ...later, tags }, { ...later, tags }]);
  const { operationId } = await jobs.operations.start({ command: "cancel", filter: { tag: tags[0] } });
  const ended = await jobs.operations.wait(operationId);
  assert.deepEqual([ended.status, ended.progress.matched], ["COMPLETED", 2]);
  assert.equal((await jobs.operations.get(operationId)).finishedAt, ended.finishedAt);
  assert.ok((await all(jobs.operations.list())).some((each) => each.operationId === operationId));
  await assert.rejects(jobs.operations.abort("01936f3e-5f3e-7cc0-8000-0123456789ab"), NotFoundError);
});

test("failures are counted, and a delivery is sent again", async () => {
  const failing = { jobType: "SIMULATION", payload: { steps: [{ type: "FAIL", message: "no", retryable: false }] }, ownerId };
  const { jobId } = await jobs.submit({ ...failing, callbackUrl: "http://127.0.0.1:9/nothing" });
  const { version } = await jobs.wait(jobId);
  assert.deepEqual((await all(jobs.dead.list({ ownerId }))).map((job) => job.jobId), [jobId]);
  let groups = (await jobs.dead.groups({ ownerId })).groups;
  while (groups.length === 0) {
    groups = (await jobs.dead.groups({ ownerId })).groups; // they are a second old
  }
  assert.deepEqual([groups[0]!.jobType, groups[0]!.jobs], ["SIMULATION", 1]);
  assert.equal((await jobs.deliveries.ofJob(jobId))[0]!.version, version);
  assert.equal((await jobs.deliveries.retry(jobId, version)).jobId, jobId);
  assert.ok((await all(jobs.deliveries.list())).some((delivery) => delivery.jobId === jobId));
});

test("an installation shows its types, workers, keys and figures", async () => {
  assert.ok((await jobs.jobTypes.list()).some(({ name }) => name === "SIMULATION"));
  assert.equal((await jobs.jobTypes.get("SIMULATION")).builtin, true);
  await assert.rejects(jobs.jobTypes.delete("NO-SUCH-TYPE"), NotFoundError);
  const { workers } = await jobs.workers.list();
  const { workerId } = workers.find(({ jobTypes }) => jobTypes.includes("SIMULATION"))!;
  assert.equal((await jobs.workers.drain(workerId)).draining, true);
  assert.equal((await jobs.workers.undrain(workerId)).draining, false);
  assert.deepEqual(await jobs.hooks.list(), []);
  const key = await jobs.keys.create({ name: "typescript", roles: ["submit"], ownerId });
  const next = await jobs.keys.rotate(key.keyId, { overlapSeconds: 60 });
  assert.deepEqual((await all(jobs.keys.list({ ownerId }))).map(({ keyId }) => keyId).sort(), [key.keyId, next.keyId].sort());
  assert.notEqual((await jobs.keys.revoke(next.keyId)).revokedAt, null);
  assert.equal((await jobs.keys.get(key.keyId)).name, "typescript");
  assert.ok(Array.isArray(await all(jobs.audit.list({ action: "no-such-action" }))));
  assert.ok(Array.isArray(await all(jobs.rejected.list({ redriven: false }))));
  await assert.rejects(jobs.rejected.get("01936f3e-5f3e-7cc0-8000-0123456789ab"), NotFoundError);
  assert.equal((await jobs.installation.me()).actor, "anonymous");
  while (!(await jobs.installation.owners({ q: ownerId.toUpperCase() })).includes(ownerId)); // they are some seconds old
  assert.equal((await jobs.installation.stats({ type: "SIMULATION" })).types.length, 1);
  assert.ok((await jobs.installation.lag()).at);
  assert.equal((await jobs.installation.health()).status, "UP");
});
