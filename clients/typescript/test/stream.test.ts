import assert from "node:assert/strict";
import { test } from "node:test";

import { ForbiddenError, JobWeaver } from "../src/index.js";
import { breaks, gateway, json } from "./gateway.js";

const events = (text: string) => () =>
  new Response(`: begin\n\n${text}`, { status: 200, headers: { "Content-Type": "text/event-stream; charset=utf-8" } });

test("a stream goes on after its last event", async () => {
  const { options, asked } = gateway(
    events('id: a-1\nevent: job\ndata: {"jobId": "j1",\ndata: "status": "RUNNING"}\n\nevent: progress\ndata: {"percent": 40}\n\nid: a-2\nevent: job\ndata: {'),
    breaks(),
    json(503, {}, { "Retry-After": "0" }),
    json(429, {}, { "Retry-After": "0" }),
    events('event: new\ndata: 1\n\nid: b-9\r\nevent: reload\r\ndata: {"reason": "missed"}\r\n\r\n'),
  );
  const seen: string[] = [];
  for await (const event of new JobWeaver(options).stream({ status: ["RUNNING"], queue: "mail" })) {
    seen.push(event.event === "job" ? `${event.id} ${event.data.status}` : event.event);
    if (event.event === "reload") {
      break;
    }
  }
  assert.deepEqual(seen, ["a-1 RUNNING", "progress", "reload"]);
  assert.deepEqual(asked.map((r) => r.headers.get("Last-Event-ID")), [null, "a-1", "a-1", "a-1", "a-1"]);
  assert.equal(asked[0]!.url.search, "?status=RUNNING&queue=mail");
});

test("a quiet stream goes on after its place, and for as long as any other", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  const begin = events(": nothing new\nid: a-4\n\n");
  const hourLater = events(": nothing new\r\nid: a-5\r\n\r\nid: a-6\n");
  const { options, asked } = gateway(
    begin,
    () => {
      t.mock.timers.tick(3_600_000);
      return hourLater();
    },
    breaks(),
    events('id: a-7\nevent: reload\ndata: {"reason": "missed"}\n\n'),
  );
  for await (const event of new JobWeaver(options).stream({ queue: "mail" })) {
    assert.equal(event.event, "reload");
    break;
  }
  assert.deepEqual(asked.map((r) => r.headers.get("Last-Event-ID")), [null, "a-4", "a-5", "a-5"]);
});

test("a stream ends with a refusal", async () => {
  const { options, asked } = gateway(json(403, { errorCode: "API.FORBIDDEN", message: "no" }));
  await assert.rejects(new JobWeaver(options).stream({ jobId: "j1" }).next(), ForbiddenError);
  assert.equal(asked.length, 1);
});
