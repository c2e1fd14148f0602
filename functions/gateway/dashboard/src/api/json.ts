import { isLosslessNumber, LosslessNumber, parse as parseExactly, stringify as stringifyExactly } from 'lossless-json';

// JSON without a change of its numbers: ids beyond 2^53, 1.10 and 1E2 are written as they were read.

/** parse reads JSON. A number that a double would write differently is a LosslessNumber. */
export function parse(text: string): unknown {
  return parseExactly(text, undefined, numberOf);
}

/** numberOf returns a number for its JSON. */
export function numberOf(text: string): number | LosslessNumber {
  return String(Number(text)) === text ? Number(text) : new LosslessNumber(text);
}

/** stringify writes a value as JSON, for people if space is given; undefined is null. */
export function stringify(value: unknown, space?: number): string {
  return stringifyExactly(value, undefined, space) ?? 'null';
}

/** isObject reports whether a value is an object of JSON. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}
