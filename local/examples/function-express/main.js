// An Express app with a function for jobs of type FUNCTION. It charges an order, once for each job.
import { randomUUID } from "node:crypto";
import express from "express";
import { Webhook } from "standardwebhooks";

import { once } from "./once.js";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const app = express();

// The signature is over the body as it was sent: no middleware may parse it before.
app.post("/charge", express.text({ type: "*/*", limit: "1mb" }), async (request, response) => {
  const body = request.body ?? "";
  try {
    webhook.verify(body, request.headers, { jsonParse: false });
  } catch (error) {
    return response.status(401).json({ errorCode: "SHOP.BAD_SIGNATURE", message: error.message });
  }
  const { order, cents } = JSON.parse(body || "{}") ?? {};
  if (typeof order !== "string" || !Number.isInteger(cents)) {
    return response.status(400).json({ errorCode: "SHOP.BAD_ORDER", message: 'the data has to be {"order": "…", "cents": …}' });
  }
  // The id of the attempt, which is signed too, is <jobId>.<attempt>.
  const [jobId] = request.get("webhook-id").split(".");
  response.json(await once(jobId, () => ({ receipt: randomUUID(), order, cents })));
});

app.listen(process.env.PORT || 8080, process.env.HOST);
