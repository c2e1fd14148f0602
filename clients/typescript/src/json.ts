import { isLosslessNumber, LosslessNumber, parse as parseExactly, stringify as stringifyExactly } from "lossless-json";

import { NotRetryable } from "./attempt.js";

/** How numbers of JSON are read. */
export type Numbers = "double" | "lossless";

/** Reads and writes JSON for one client. */
export interface Codec {
  readonly numbers: Numbers;
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

/** A number that a double writes in the same way is a number; every other is a LosslessNumber. */
const exact = (text: string) => (String(Number(text)) === text ? Number(text) : new LosslessNumber(text));

const codecs: Record<Numbers, Codec> = {
  double: { numbers: "double", parse: (text) => JSON.parse(text), stringify: (value) => JSON.stringify(value) ?? "null" },
  lossless: {
    numbers: "lossless",
    parse: (text) => parseExactly(text, undefined, exact),
    stringify: (value) => stringifyExactly(value) ?? "null",
  },
};

export function codecOf(numbers: Numbers = "double"): Codec {
  return codecs[numbers];
}

/** Returns a value as JSON, or fails the attempt for good: another run of the handler would end in the same way. */
export function jsonOf(value: unknown, name: string, what: string, codec: Codec): string {
  const lossless = codec.numbers === "lossless";
  const wrong = flaw(value, name, [], lossless);
  if (wrong !== undefined) {
    throw new NotRetryable(`${what} has no JSON form: ${wrong}`, { errorCode: "WORKER.INVALID_OUTPUT" });
  }
  return codec.stringify(value);
}

/** Names the first part of a value that JSON cannot hold, or that JSON.stringify would change without an error. */
function flaw(value: unknown, path: string, above: readonly object[], lossless: boolean): string | undefined {
  switch (typeof value) {
    case "string":
      return textFlaw(value, path);
    case "number":
      return Number.isFinite(value) ? undefined : `${path} is ${value}`;
    case "bigint":
      return lossless ? undefined : `${path} is a BigInt`;
    case "function":
    case "symbol":
      return `${path} is a ${typeof value}`;
    case "object":
      return value === null || (lossless && isLosslessNumber(value)) ? undefined : objectFlaw(value, path, above, lossless);
    default:
      return undefined;
  }
}

function objectFlaw(value: object, path: string, above: readonly object[], lossless: boolean): string | undefined {
  if (above.includes(value)) {
    return `${path} is a cycle`;
  }
  if (above.length === deepest) {
    return `${path} is nested too deeply`;
  }
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (isLosslessNumber(value)) {
    return `${path} is a LosslessNumber, and the client has not the option numbers: "lossless"`;
  }
  if (ArrayBuffer.isView(value) || kind === "ArrayBuffer") {
    return `${path} is a ${value.constructor.name}`;
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? `${path} is an invalid Date` : undefined;
  }
  const within = [...above, value];
  if ("toJSON" in value && typeof value.toJSON === "function") {
    try {
      return flaw(value.toJSON(), path, within, lossless);
    } catch (error) {
      return `${path}: ${String(error)}`;
    }
  }
  if (Array.isArray(value)) {
    return first(value.keys(), (i) => flaw(value[i], `${path}[${i}]`, within, lossless));
  }
  const names = Object.keys(value);
  if (names.length === 0 && !plain.has(kind)) {
    return `${path} is a ${kind}`; // such as a Map or a Promise, of which {} would remain
  }
  return first(names, (name) => textFlaw(name, `${path}.${name}`) ?? flaw((value as never)[name], `${path}.${name}`, within, lossless));
}

const deepest = 1_000;
const plain = new Set(["Object", "Boolean", "Number", "String", "Arguments"]);

function first<T>(all: Iterable<T>, flawOf: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const wrong = flawOf(one);
    if (wrong !== undefined) {
      return wrong;
    }
  }
  return undefined;
}

function textFlaw(text: string, path: string): string | undefined {
  if (text.includes("\0")) {
    return `${path.replaceAll("\0", "\\0")} contains the character \\u0000`;
  }
  return /\p{Surrogate}/u.test(text) ? `${path} contains half of a surrogate pair` : undefined;
}
