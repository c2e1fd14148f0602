import { NotRetryable, type Result } from "./attempt.js";

const maxOutput = 262_144; // bytes
const encoder = new TextEncoder();

/** The members of a result, as JSON. */
export function jsonOfResult(result: Result): string {
  return JSON.stringify(result).slice(1, -1);
}

/** Returns an output, or throws if it is too large. */
export function bounded(output: string): string {
  const bytes = encoder.encode(output).length;
  if (bytes > maxOutput) {
    const message = `the output has ${bytes} bytes, ${maxOutput} are allowed`;
    throw new NotRetryable(message, { errorCode: "WORKER.OUTPUT_TOO_LARGE" });
  }
  return output;
}
