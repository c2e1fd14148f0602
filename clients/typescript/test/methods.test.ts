// Every operation of the contract has a method, or stands in clients/methods.json with the reason why it has none.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { JobWeaver } from "../src/index.js";
import { gateway, json } from "./gateway.js";

const job = { jobType: "A", payload: 1 };
const schedule = { cron: "@daily", job };

/** A call of each method, by its name. */
const calls: Record<string, (c: JobWeaver) => Promise<unknown> | AsyncGenerator> = {
  submit: (c) => c.submit(job),
  list: (c) => c.list(),
  submitBatch: (c) => c.submitBatch([job]),
  get: (c) => c.get("i"),
  change: (c) => c.change("i", { priority: 1 }),
  delete: (c) => c.delete("i"),
  logs: (c) => c.logs("i"),
  cancel: (c) => c.cancel("i"),
  retry: (c) => c.retry("i"),
  reschedule: (c) => c.reschedule("i", new Date()),
  runAgain: (c) => c.runAgain("i"),
  callback: (c) => c.callback("s", { jobId: "i", attempt: 1, status: "COMPLETED", output: 1 }),
  sendEvent: (c) => c.sendEvent({ source: "/shop", type: "paid", data: 1 }),
  stream: (c) => c.stream({ jobId: "i" }),
  "dead.list": (c) => c.dead.list({ type: "A" }),
  "dead.groups": (c) => c.dead.groups({ type: "A" }),
  "deliveries.ofJob": (c) => c.deliveries.ofJob("i"),
  "deliveries.retry": (c) => c.deliveries.retry("i", 4),
  "deliveries.list": (c) => c.deliveries.list({ status: "FAILED" }),
  "audit.list": (c) => c.audit.list({ jobId: "i" }),
  "controls.list": (c) => c.controls.list(),
  "controls.get": (c) => c.controls.get("queue", "a/b"),
  "controls.set": (c) => c.controls.set("queue", "q", { maxRunning: 5 }),
  "controls.delete": (c) => c.controls.delete("type", "A"),
  "controls.pause": (c) => c.controls.pause("owner", "o"),
  "controls.resume": (c) => c.controls.resume("fairnessKey", "*"),
  "queues.list": (c) => c.queues.list(),
  "queues.get": (c) => c.queues.get("q"),
  "queues.create": (c) => c.queues.create("q"),
  "queues.remove": (c) => c.queues.remove("q", { drain: true }),
  "queues.shares": (c) => c.queues.shares("q", { q: "k" }),
  "operations.start": (c) => c.operations.start({ command: "cancel", filter: { type: "A" } }),
  "operations.list": (c) => c.operations.list(),
  "operations.get": (c) => c.operations.get("i"),
  "operations.abort": (c) => c.operations.abort("i"),
  "batches.create": (c) => c.batches.create({ jobs: [job] }),
  "batches.list": (c) => c.batches.list({ status: "OPEN" }),
  "batches.get": (c) => c.batches.get("i"),
  "batches.close": (c) => c.batches.close("i"),
  "batches.cancel": (c) => c.batches.cancel("i"),
  "batches.retry": (c) => c.batches.retry("i"),
  "flows.create": (c) => c.flows.create({ jobs: { only: job } }),
  "flows.list": (c) => c.flows.list(),
  "flows.get": (c) => c.flows.get("i"),
  "flows.cancel": (c) => c.flows.cancel("i"),
  "flows.retry": (c) => c.flows.retry("i"),
  "alerts.create": (c) => c.alerts.create({ name: "n", to: { email: ["a@example.org"] } }),
  "alerts.list": (c) => c.alerts.list(),
  "alerts.get": (c) => c.alerts.of("o").get("n"),
  "alerts.set": (c) => c.alerts.set("n", { to: { email: ["a@example.org"] } }),
  "alerts.delete": (c) => c.alerts.delete("n"),
  "alerts.pause": (c) => c.alerts.pause("n"),
  "alerts.resume": (c) => c.alerts.resume("n"),
  "alerts.test": (c) => c.alerts.test("n"),
  "alerts.notices": (c) => c.alerts.notices("n"),
  "schedules.create": (c) => c.schedules.create({ name: "n", ...schedule }),
  "schedules.list": (c) => c.schedules.list(),
  "schedules.times": (c) => c.schedules.times({ cron: "@daily" }),
  "schedules.get": (c) => c.schedules.of("o").get("n"),
  "schedules.set": (c) => c.schedules.set("n", schedule),
  "schedules.delete": (c) => c.schedules.delete("n"),
  "schedules.pause": (c) => c.schedules.pause("n"),
  "schedules.resume": (c) => c.schedules.resume("n"),
  "schedules.run": (c) => c.schedules.run("n"),
  "schedules.ticks": (c) => c.schedules.ticks("n"),
  "hooks.list": (c) => c.hooks.list(),
  "workers.list": (c) => c.workers.list(),
  "workers.drain": (c) => c.workers.drain("w"),
  "workers.undrain": (c) => c.workers.undrain("w"),
  "jobTypes.list": (c) => c.jobTypes.list(),
  "jobTypes.get": (c) => c.jobTypes.get("A"),
  "jobTypes.delete": (c) => c.jobTypes.delete("A"),
  "installation.stats": (c) => c.installation.stats({ queue: "q" }),
  "installation.owners": (c) => c.installation.owners({ q: "o" }),
  "installation.lag": (c) => c.installation.lag(),
  "installation.health": (c) => c.installation.health(),
  "installation.me": (c) => c.installation.me(),
  "installation.webhookSecrets": (c) => c.installation.webhookSecrets(),
  "keys.create": (c) => c.keys.create({ name: "ci", roles: ["submit"] }),
  "keys.list": (c) => c.keys.list(),
  "keys.get": (c) => c.keys.get("k"),
  "keys.revoke": (c) => c.keys.revoke("k"),
  "keys.rotate": (c) => c.keys.rotate("k", { overlapSeconds: 60 }),
  "rejected.list": (c) => c.rejected.list({ topic: "t" }),
  "rejected.get": (c) => c.rejected.get("i"),
  "rejected.discard": (c) => c.rejected.discard("i"),
  "rejected.redrive": (c) => c.rejected.redrive("i"),
};

/** The operations of the contract by their method and path, such as "GET /api/jobs/{jobId}". */
function operations(): Map<string, string> {
  const found = new Map<string, string>();
  let path = "";
  let method = "";
  for (const line of readFileSync("../../functions/gateway/openapi.yaml", "utf8").split("\n")) {
    path = /^ {2}(\/\S*):$/.exec(line)?.[1] ?? path;
    method = /^ {4}(get|put|post|patch|delete):$/.exec(line)?.[1] ?? method;
    const id = /^ {6}operationId: (\w+)$/.exec(line)?.[1];
    if (id) {
      found.set(id, `${method.toUpperCase()} ${path}`);
    }
  }
  return found;
}

test("every operation of the contract has its method", async (t) => {
  const methods = JSON.parse(readFileSync("../methods.json", "utf8")) as Record<string, string | { none: string }>;
  const contract = operations();
  assert.deepEqual(Object.keys(methods).sort(), [...contract.keys()].sort());
  const named = Object.values(methods).filter((name) => typeof name === "string");
  assert.deepEqual(Object.keys(calls).sort(), named.sort());
  for (const [operation, name] of Object.entries(methods)) {
    if (typeof name !== "string") {
      continue;
    }
    await t.test(name, async () => {
      const { options, asked } = gateway(json(404, {}));
      const client = new JobWeaver(options);
      const method = name.split(".").reduce<any>((of, part) => of[part], client);
      assert.equal(typeof method, "function");
      const answer = calls[name]!(client);
      const ended = "next" in answer ? answer.next() : answer;
      await assert.rejects(ended as Promise<unknown>);
      const path = contract.get(operation)!.replaceAll(/[.]/g, "[.]").replaceAll(/\{\w+\}/g, "[^/]+");
      assert.match(`${asked[0]!.method} ${asked[0]!.url.pathname}`, new RegExp(`^${path}$`));
    });
  }
});
