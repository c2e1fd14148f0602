import { isObject, parse } from '../../api/json';

export type Changes = { ok: true; value: Record<string, unknown> } | { ok: false; problem: string };

/** parseChanges parses a JSON Merge Patch, which must be an object; an empty text means no change. */
export function parseChanges(text: string): Changes {
  if (text.trim() === '') {
    return { ok: true, value: {} };
  }
  try {
    const value = parse(text);
    return isObject(value) ? { ok: true, value } : { ok: false, problem: 'Changes are an object: {"priority": 5}' };
  } catch (error) {
    return { ok: false, problem: `This is no JSON: ${(error as Error).message}` };
  }
}
