// A route of a Next.js app, with a function for jobs of type FUNCTION. It charges an order, once for each job.
import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";

import { once } from "./once.js";

export async function POST(request) {
  const body = await request.text(); // as it was sent: the signature is over it
  try {
    const webhook = new Webhook(process.env.WEBHOOK_SECRET);
    webhook.verify(body, Object.fromEntries(request.headers), { jsonParse: false });
  } catch (error) {
    return Response.json({ errorCode: "SHOP.BAD_SIGNATURE", message: error.message }, { status: 401 });
  }
  const { order, cents } = JSON.parse(body || "{}") ?? {};
  if (typeof order !== "string" || !Number.isInteger(cents)) {
    const message = 'the data has to be {"order": "…", "cents": …}';
    return Response.json({ errorCode: "SHOP.BAD_ORDER", message }, { status: 400 });
  }
  // The id of the attempt, which is signed too, is <jobId>.<attempt>.
  const [jobId] = request.headers.get("webhook-id").split(".");
  return Response.json(await once(jobId, () => ({ receipt: randomUUID(), order, cents })));
}
