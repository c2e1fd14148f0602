import { type Attempt, type AttemptContext, JobWeaver, NotRetryable, Snooze } from "../../src/index.js";

/** A handler of tests: it does what its payload names, in its thread. */
export default async function compute({ payload, checkpoint, attempt }: Attempt<any>, context: AttemptContext): Promise<unknown> {
  switch (payload.do) {
    case "block": {
      const end = Date.now() + payload.ms;
      while (Date.now() < end);
      return { threads: (globalThis as { runs?: number }).runs };
    }
    case "report":
      context.log("a line", "warn");
      context.progress(50, "half");
      await context.save({ page: 1 });
      return { attempt, checkpoint, step: await context.step("one", () => 7) };
    case "throw":
      throw new Error("no luck");
    case "never again":
      throw new NotRetryable("no", { errorCode: "A.B" });
    case "snooze":
      throw new Snooze(1_000);
    case "not JSON":
      return new Map([[1, 2]]);
    case "call":
      return context.call(new JobWeaver({ url: "http://none" }).task("B", {}), { id: payload.id });
    case "beside": {
      const slow = () => new Promise((resolve) => setTimeout(() => resolve(7), 100));
      return Promise.all([context.step("slow", slow), context.sleep("cool off", 60_000)]);
    }
    case "outlive":
      void context.step("charge", () => 7);
      return new Promise(() => undefined); // does not end with its signal
    case "receive":
      return context.receive("B", { match: { id: payload.id } });
    case "exit":
      return process.exit(3);
    case "wait":
      await new Promise((_, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason as Error)));
  }
  return null;
}
