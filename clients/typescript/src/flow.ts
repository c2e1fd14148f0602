import type { JobWeaver } from "./client.js";
import type { CallOptions } from "./core.js";
import type { FlowJobRequest, FlowRequest, MadeFlow } from "./parts/index.js";
import type { components } from "./schema.gen.js";
import type { Task, TaskRequest } from "./task.js";

type Condition = components["schemas"]["Condition"];

const place = Symbol("place");

/** What a reference stands for: an output of a job of the flow, or an element of a fan-out. */
interface Place {
  $output?: string;
  $item?: "value" | "index";
  path?: string;
  default?: unknown;
}

/** Stands for a value that is known when the job starts. Its members stand for the parts of the value. */
export type Ref<T> = { readonly [place]: T } & (T extends readonly (infer E)[]
  ? { readonly [index: number]: Ref<E> }
  : T extends object
    ? { readonly [K in keyof T]-?: Ref<Exclude<T[K], undefined>> }
    : unknown);

/** A value, or references in the place of it or of its parts. */
export type Given<T> = 0 extends 1 & T // any
  ? any
  : Ref<T> | (T extends readonly (infer E)[] ? readonly Given<E>[] : T extends object ? { [K in keyof T]: Given<T[K]> } : T);

/** A job of a flow. In `after` of another job it has to complete; `failed` and `ended` are the other conditions. */
export class FlowJob<Output> {
  readonly output: Ref<Output>;
  readonly failed: FlowCondition;
  readonly ended: FlowCondition;

  constructor(readonly name: string) {
    this.output = refTo({ $output: name });
    this.failed = { name, on: "failed" };
    this.ended = { name, on: "ended" };
  }
}

export interface FlowCondition {
  readonly name: string;
  readonly on: Condition;
}

/** What a job of a flow has besides its payload. */
export type FlowJobOptions = Omit<TaskRequest, "after" | "batchId" | "jobId" | "idempotencyKey" | "unique" | "debounce"> & {
  /** The jobs that it waits for, besides those to whose outputs its payload refers. */
  after?: readonly (FlowJob<any> | FlowCondition)[];
};

/** A flow that is written as code: each job is added after those that it needs. JobWeaver.flow begins one. */
export class FlowBuilder {
  readonly #client: JobWeaver<any>;
  readonly #about: Omit<FlowRequest, "jobs">;
  readonly #jobs: Record<string, FlowJobRequest> = {};

  constructor(client: JobWeaver<any>, about: Omit<FlowRequest, "jobs">) {
    this.#client = client;
    this.#about = about;
  }

  /** Adds a job of a task. The defaults `unique` and `debounce` of the task do not apply within a flow. */
  add<Input, Output>(name: string, task: Task<Input, Output, any>, payload: Given<Input>, options: FlowJobOptions = {}): FlowJob<Output> {
    this.#add(name, task, payload, options, []);
    return new FlowJob(name);
  }

  /** Adds a job of a task for each element of an array in an output. The output of them together is the array of theirs. */
  each<Element, Input, Output>(
    name: string,
    task: Task<Input, Output, any>,
    array: Ref<readonly Element[]> | Ref<Element[]>,
    payload: (element: Ref<Element>, index: Ref<number>) => Given<Input>,
    options: FlowJobOptions = {},
  ): FlowJob<(Output | null)[]> {
    const of = placeOf(array);
    if (of?.$output === undefined) {
      throw new TypeError(`the array of ${name} must be in the output of a job`);
    }
    const made = payload(refTo({ $item: "value" }), refTo({ $item: "index" }));
    this.#add(name, task, made, options, [of.$output]).forEach = { $output: of.$output, path: of.path };
    return new FlowJob(name);
  }

  /** The request, as flows.create takes it. */
  request(): FlowRequest {
    return { ...this.#about, jobs: { ...this.#jobs } };
  }

  /** Submits the flow. If it has no idempotencyKey it gets one, so that a repeated request makes no second flow. */
  submit(options: CallOptions = {}): Promise<MadeFlow> {
    return this.#client.flows.create(this.request(), options);
  }

  #add(name: string, task: Task<any, any, any>, given: unknown, options: FlowJobOptions, needs: string[]): FlowJobRequest {
    if (Object.hasOwn(this.#jobs, name)) {
      throw new TypeError(`the flow has two jobs ${name}`);
    }
    const { after = [], ...members } = options;
    const payload = resolved(given, needs);
    const { unique: _, debounce: __, ...request } = task.request(payload, members);
    const conditions = after.map((each) => (each instanceof FlowJob ? each.name : { name: each.name, on: each.on }));
    const named = new Set(after.map((each) => each.name));
    const all = [...new Set(needs)].filter((each) => !named.has(each)).concat(conditions as string[]);
    for (const each of [...needs, ...named]) {
      if (!Object.hasOwn(this.#jobs, each)) {
        throw new TypeError(`${name} comes after ${each}, which is not a job of this flow`);
      }
    }
    return (this.#jobs[name] = { ...(request as FlowJobRequest), payload, ...(all.length > 0 && { after: all }) });
  }
}

/** The reference, or the value where the job has not completed or its output has no such part. */
export function orElse<T>(ref: Ref<T>, value: T): Ref<T> {
  return refTo({ ...placeOf(ref), default: value });
}

function refTo<T>(at: Place): Ref<T> {
  return new Proxy({} as Ref<T>, {
    get: (_, key) => {
      if (typeof key === "symbol") {
        return key === place ? at : undefined;
      }
      const part = /^\d+$/.test(key) ? `[${key}]` : /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `['${key.replaceAll(/['\\]/g, "\\$&")}']`;
      return refTo({ ...at, path: `${at.path ?? "$"}${part}` });
    },
  });
}

function placeOf(value: unknown): Place | undefined {
  return typeof value === "object" && value !== null ? (value as { [place]?: Place })[place] : undefined;
}

/** The payload as the API takes it. The names of the jobs to whose outputs it refers are added to needs. */
function resolved(value: unknown, needs: string[]): unknown {
  const at = placeOf(value);
  if (at) {
    if (at.$output !== undefined) {
      needs.push(at.$output);
    }
    return at;
  }
  if (Array.isArray(value)) {
    return value.map((each) => resolved(each, needs));
  }
  if (typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value) as null)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, needs)]));
  }
  return value; // a primitive, or what has a JSON form of its own, as a Date
}
