import type { Attempt, Options } from "../src/index.js";

interface Result {
  token: string;
  status: string;
  [member: string]: unknown;
}

interface Heartbeat {
  token: string;
  progress?: { percent: number; message?: string };
  log?: { level: string; text: string }[];
}

interface Saved {
  token: string;
  number: number;
  checkpoint: any;
}

interface Step {
  token: string;
  name: string;
  result?: unknown;
  until?: string;
  tookMs?: number;
}

interface Body extends Partial<Step> {
  after?: string | null;
  attempts: Heartbeat[];
  results: Result[];
  checkpoints: Saved[];
}

type Answer = () => Response | Error;

/** A gateway for pull workers without a network. It hands out the attempts of a test, and records the requests. */
export class WorkGateway {
  readonly claims: { worker: string; types: string[]; queues?: string[]; slots: number; wait: string }[] = [];
  readonly heartbeats: Heartbeat[] = [];
  readonly results: Result[] = [];
  /** How many results the requests had. */
  readonly settles: number[] = [];
  readonly saves: Saved[] = [];
  /** The requests that save a step, and what is kept of them, by name: the first save counts. */
  readonly stepSaves: Step[] = [];
  readonly steps = new Map<string, { name: string; result: unknown; until: string | null }>();
  /** What the requests that read steps have as after. */
  readonly stepReads: (string | null)[] = [];
  /** Steps in a page. */
  stepPage = 100;
  /** The definitions of tasks, by job type. */
  readonly described: [string, unknown][] = [];
  /** Tokens in the responses to heartbeats. */
  readonly cancelled: string[] = [];
  readonly lost: string[] = [];
  /** Responses to the next requests to claim, heartbeat and settle, in place of the correct ones. */
  readonly instead: Record<string, Answer[]> = { claim: [], heartbeat: [], settle: [], checkpoint: [], describe: [], steps: [], "steps/read": [], wait: [] };
  /** How many claims are open. */
  open = 0;
  /** The requests to settle, to wait, and to save checkpoints and steps, as text. */
  readonly bodies: string[] = [];
  readonly #offered: (Attempt | string)[] = [];
  #waiting: (() => void)[] = [];

  get options(): Options {
    return { url: "http://gateway", fetch: (request, init) => this.#answer(request, init!.signal!) };
  }

  /** Gives an attempt to a claim. Its token is its id. */
  offer(jobId: string, more: Partial<Attempt> = {}): void {
    const deadline = new Date(Date.now() + 60_000).toISOString();
    const ids = { jobId, traceId: jobId, ownerId: null, tags: null };
    const own = { ...ids, attempt: 1, jobType: "A", queue: "pull", payload: {}, callback: null };
    this.#offered.push({ ...own, deadline, ...more });
    this.changed();
  }

  /** Gives an attempt, as JSON, to a claim. */
  offerRaw(attempt: string): void {
    this.#offered.push(attempt);
    this.changed();
  }

  /** Resolves when a condition holds. It is checked after each request, and when a test calls changed(). */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  changed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((resolve) => resolve());
  }

  async #answer(request: Request, signal: AbortSignal): Promise<Response> {
    const last = new URL(request.url).pathname.replace("/api/job-types/", "").split("/api/workers/").at(-1)!;
    const what = request.method === "PUT" ? "describe" : last;
    const text = await request.text();
    const body = JSON.parse(text) as Body & WorkGateway["claims"][0];
    if (what === "describe") {
      this.described.push([last, body]);
    } else if (what === "claim") {
      this.claims.push(body);
    } else if (what === "heartbeat") {
      this.heartbeats.push(...body.attempts);
    } else if (what === "steps") {
      const { token, name, result, until, tookMs } = body as unknown as Step;
      this.stepSaves.push({ token, name, result, until, tookMs });
    } else if (what === "steps/read") {
      this.stepReads.push(body.after!);
    } else if (what === "checkpoint") {
      this.saves.push(...body.checkpoints);
    } else if (what !== "wait") {
      this.results.push(...body.results);
      this.settles.push(body.results.length);
    }
    if (what === "settle" || what === "checkpoint" || what === "steps" || what === "wait") {
      this.bodies.push(text);
    }
    const instead = this.instead[what]!.shift()?.();
    const answer = instead ?? (await this.#right(what, body, signal));
    this.changed();
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  }

  async #right(what: string, body: Body & { slots: number }, signal: AbortSignal): Promise<Response> {
    if (what === "heartbeat") {
      return Response.json({ cancelled: this.cancelled, lost: this.lost });
    }
    if (what === "settle" || what === "checkpoint") {
      return Response.json({ results: (body.results ?? body.checkpoints).map(({ token }) => ({ token, status: 200 })) });
    }
    if (what === "steps") {
      const { name, result = null, until = null } = body as unknown as Step;
      const known = this.steps.get(name);
      this.steps.set(name, known ?? { name, result, until });
      const more = JSON.stringify({ until, attempt: 1, tookMs: null, savedAt: new Date(0).toISOString(), ...known, name, result: undefined });
      // The result as it came: JSON.parse would change numbers.
      const raw = known ? JSON.stringify(known.result) : /"result":(.*)}$/.exec(this.bodies.at(-1)!)?.[1];
      return new Response(`${more.slice(0, -1)},"result":${raw ?? "null"}}`);
    }
    if (what === "steps/read") {
      const names = [...this.steps.keys()].sort().filter((name) => name > (body.after ?? ""));
      const page = names.slice(0, this.stepPage);
      return Response.json({ steps: page.map((name) => this.steps.get(name)), next: names.length > page.length ? page.at(-1) : null });
    }
    if (what === "describe") {
      return new Response(null, { status: 204 });
    }
    this.open++;
    this.changed();
    signal.addEventListener("abort", () => this.changed(), { once: true });
    const socket = setInterval(() => undefined, 60_000); // a connection keeps a process alive
    await this.until(() => signal.aborted || this.#offered.length > 0);
    clearInterval(socket);
    this.open--;
    signal.throwIfAborted();
    const attempts = this.#offered.splice(0, body.slots).map((attempt) => {
      return typeof attempt === "string" ? attempt : JSON.stringify({ token: attempt.jobId, ...attempt });
    });
    return new Response(`{"attempts":[${attempts.join(",")}]}`);
  }
}
