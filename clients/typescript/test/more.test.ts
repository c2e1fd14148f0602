import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Webhook as StandardWebhook } from "standardwebhooks";

import { enqueue, type JobRequest, version, Webhook } from "../src/index.js";
import { writeTypes } from "../src/types.js";

const oldSecret = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQ=";
const newSecret = "whsec_bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXc=";
const body = '{"type": "io.jobweaver.job.status.v1", "jobId": "j1", "status": "COMPLETED"}';

function signed(secret: string, text: string, at = new Date()): Record<string, string> {
  const signature = new StandardWebhook(secret).sign("j1.v4", at, text);
  return { "Webhook-Id": "j1.v4", "Webhook-Timestamp": String(Math.floor(at.getTime() / 1000)), "Webhook-Signature": signature };
}

test("a webhook is verified with one of the secrets", () => {
  const hook = new Webhook(newSecret, oldSecret);
  for (const secret of [oldSecret, newSecret]) {
    for (const headers of [signed(secret, body), new Headers(signed(secret, body))]) {
      const end = hook.verify(Buffer.from(body), headers);
      assert.deepEqual([end.id, end.job.jobId, end.job.status], ["j1.v4", "j1", "COMPLETED"]);
    }
  }
});

test("a webhook that is not ours is refused", () => {
  const hook = new Webhook(newSecret);
  const cases: [string, Record<string, string>, string][] = [
    ["another secret", signed(oldSecret, body), body],
    ["an old one", signed(newSecret, body, new Date(Date.now() - 360_000)), body],
    ["a changed one", signed(newSecret, body), body.replace("j1", "j2")],
    ["an unsigned one", {}, body],
  ];
  for (const [name, headers, text] of cases) {
    assert.throws(() => hook.verify(text, headers), name);
  }
  assert.throws(() => new Webhook(), TypeError);
  new Webhook(` ${newSecret}\r\n`);
  for (const wrong of ["v1," + newSecret, newSecret.slice(6), "whsec_", "whsec_AA!AA", ""]) {
    assert.throws(() => new Webhook(wrong), TypeError, wrong);
  }
});

test("a job is enqueued on one's own connection", async () => {
  const asked: unknown[] = [];
  const connection = {
    query: (text: string, values: string[]) => {
      asked.push(text, values);
      return Promise.resolve({ rows: [{ enqueue: "j1" }] });
    },
  };
  assert.equal(await enqueue(connection, { jobType: "EMAIL", payload: { to: "a" }, queue: "mail", delayMs: 1000 }), "j1");
  assert.deepEqual(asked, [
    "select jobweaver.enqueue($1, $2::text::jsonb, $3::text::jsonb) as enqueue",
    ["EMAIL", '{"to":"a"}', '{"queue":"mail","delayMs":1000}'],
  ]);
  await assert.rejects(enqueue(connection, { jobType: "EMAIL", payload: {}, idempotencyKey: "a" }), TypeError);
});

test("the package has the version of the contract", () => {
  const own = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const contract = readFileSync("../../functions/gateway/openapi.yaml", "utf8");
  assert.equal(own.version, version);
  assert.match(contract, new RegExp(`^  version: ${version.replaceAll(".", "\\.")}$`, "m"));
});

test("types are made of the schemas of job types", async () => {
  const text = await writeTypes([
    {
      name: "resize.image",
      schema: { type: "object", required: ["url"], properties: { url: { type: "string" }, width: { type: "integer" } } },
      outputSchema: { type: "object", required: ["bytes"], properties: { bytes: { type: "integer" } } },
    },
    { name: "ANY", schema: null },
  ]);
  assert.match(text, /"resize.image": ResizeImagePayload;/);
  assert.match(text, /url: string;\n\s+width\?: number;/);
  assert.match(text, /"ANY": unknown;/);
  assert.match(text, /interface JobOutputs \{[^}]*"resize.image": ResizeImageOutput;/);
});

test("a payload has the type of its job type", () => {
  interface JobTypes {
    EMAIL: { to: string[] };
    RESIZE: { width: number };
  }
  const good: JobRequest<JobTypes> = { jobType: "EMAIL", payload: { to: ["a"] } };
  // @ts-expect-error: it is the payload of another type
  const bad: JobRequest<JobTypes> = { jobType: "EMAIL", payload: { width: 1 } };
  // @ts-expect-error: there is no such type
  const none: JobRequest<JobTypes> = { jobType: "E-MAIL", payload: { to: ["a"] } };
  assert.ok(good && bad && none);
});
