import type { WorkWait, WorkWaitAnswer } from "./waits.js";

type State = WorkWaitAnswer["waits"][number];

/** An event of a test. */
export interface TestEvent {
  type: string;
  source?: string;
  subject?: string;
  data?: unknown;
}

const forever = 30 * 86_400_000; // that a wait without a timeout may let the job sleep

/** The waits of a TestJob, as a gateway would keep them. */
export class TestWaits {
  readonly #job: { now: number; events: TestEvent[]; calls: Record<string, (payload: any) => unknown> };
  readonly #states = new Map<string, State>();
  readonly #taken = new Set<TestEvent>();

  constructor(job: { now: number; events: TestEvent[]; calls: Record<string, (payload: any) => unknown> }) {
    this.#job = job;
  }

  async ask(waits: WorkWait[]): Promise<WorkWaitAnswer> {
    const delays: number[] = [];
    const states: State[] = [];
    for (const wait of waits) {
      const state = await this.#look(wait);
      states.push(state);
      if (state.status === "OPEN") {
        delays.push(state.until ? Date.parse(state.until) - this.#job.now : forever);
      }
    }
    return { delayMs: delays.length > 0 ? Math.min(...delays) : null, waits: states };
  }

  async #look(wait: WorkWait): Promise<State> {
    const { name, timeoutMs } = wait;
    const until = timeoutMs ? new Date(this.#job.now + timeoutMs).toISOString() : null;
    const state = this.#states.get(name) ?? { name, status: "OPEN", until };
    this.#states.set(name, state);
    if (state.status !== "OPEN") {
      return state;
    }
    if (wait.job) {
      return this.#call(state, wait.job);
    }
    const event = this.#job.events.find((one) => !this.#taken.has(one) && fits(one, wait.event!));
    if (event) {
      this.#taken.add(event);
      state.status = "DONE";
      const id = `test-${this.#taken.size}`;
      state.event = { id, ...event, source: event.source ?? "/test", data: structuredClone(event.data) };
    } else if (state.until && Date.parse(state.until) <= this.#job.now) {
      state.status = "TIMED_OUT";
    }
    return state;
  }

  async #call(state: State, { jobType, payload }: NonNullable<WorkWait["job"]>): Promise<State> {
    const call = this.#job.calls[jobType];
    const jobId = state.job?.jobId ?? crypto.randomUUID();
    state.job = { jobId, status: "PENDING", output: null, lastError: null };
    if (!call) {
      return state;
    }
    state.status = "DONE";
    try {
      const output = JSON.parse(JSON.stringify((await call(payload)) ?? null)) as unknown;
      state.job = { jobId, status: "COMPLETED", output, lastError: null };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      state.job = { jobId, status: "FAILED", output: null, lastError: { errorCode: "TEST.FAILED", message } };
    }
    return state;
  }
}

function fits(event: TestEvent, asked: NonNullable<WorkWait["event"]>): boolean {
  const same = event.type === asked.type && (!asked.source || event.source === asked.source) && (!asked.subject || event.subject === asked.subject);
  return same && Object.entries(asked.match ?? {}).every(([path, value]) => member(event.data, path) === value);
}

/** The member of data at a path such as order.id; undefined if there is none. */
function member(data: unknown, path: string): unknown {
  if (typeof data !== "object" || data === null) {
    return undefined;
  }
  if (path in data) {
    return (data as Record<string, unknown>)[path];
  }
  const [name = "", ...rest] = path.split(".");
  return rest.length > 0 && name in data ? member((data as Record<string, unknown>)[name], rest.join(".")) : undefined;
}
