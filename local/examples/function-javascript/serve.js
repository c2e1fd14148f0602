import { createServer } from "node:http";
import { HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";

const mostBytes = 1 << 20;

// places limits how many events are handled at once. Further ones are answered with 503 and Retry-After.
let places = Number(process.env.AT_ONCE || 8);

// Refusal means that the event is invalid and the attempt is not retried. After any other error the event is sent again.
export class Refusal extends Error {
  constructor(code, message, status = 400) {
    super(message);
    Object.assign(this, { code, status });
  }
}

// now answers an event with the result of f, which may be async.
export function now(f) {
  return async (request, response, event) => answer(response, 200, await f(event));
}

// receive passes the event of a request to its route. After the response it runs the function that the route returned.
async function receive(routes, request, response) {
  if (places === 0) {
    response.setHeader("Retry-After", "1");
    return answer(response, 503, { errorCode: "FUNCTION.BUSY", message: "all places are taken" });
  }
  places--;
  try {
    const take = routes[request.url];
    if (!take || request.method !== "POST") throw new Refusal("FUNCTION.BAD_REQUEST", "there is nothing here", 404);
    const body = await read(request);
    verify(request.headers, body);
    const after = await take(request, response, parse(request.headers, body));
    await after?.();
  } catch (error) {
    const code = error instanceof Refusal ? error.code : "FUNCTION.FAILED";
    if (response.headersSent) return console.error(error);
    answer(response, error.status ?? 500, { errorCode: code, message: error.message });
  } finally {
    places++;
  }
}

async function read(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length <= mostBytes) chunks.push(chunk);
  }
  if (length > mostBytes) throw new Refusal("FUNCTION.BAD_REQUEST", "the body is too large", 413);
  return Buffer.concat(chunks).toString();
}

// verify checks the signature with WEBHOOK_SECRET, if that is set.
function verify(headers, body) {
  if (!process.env.WEBHOOK_SECRET) return;
  try {
    new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers, { jsonParse: false });
  } catch (error) {
    throw new Refusal("FUNCTION.BAD_REQUEST", error.message, 401);
  }
}

function parse(headers, body) {
  try {
    const event = HTTP.toEvent({ headers, body });
    event.validate();
    return event;
  } catch (error) {
    throw new Refusal("FUNCTION.BAD_REQUEST", `this is no CloudEvent: ${error.message}`);
  }
}

export function answer(response, status, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(text);
}

// serve listens until a signal, and then finishes the events that it has begun.
export function serve(routes) {
  const server = createServer((request, response) => receive(routes, request, response));
  server.listen(process.env.PORT || 8080, process.env.HOST, () => console.log("listening on", server.address().port));
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.once(signal, () => server.close()); // node exits when nothing is left to do
  }
}
