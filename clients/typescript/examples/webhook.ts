import { createServer } from "node:http";

import { Webhook } from "@jobweaver/client";

const hook = new Webhook(process.env.WEBHOOK_SECRET!); // of `jobweaver webhook-secrets end`

createServer(async (request, response) => {
  try {
    const { id, job } = hook.verify(Buffer.concat(await request.toArray()), request.headers);
    console.log(id, job.jobId, job.status);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(Number(process.env.PORT));
