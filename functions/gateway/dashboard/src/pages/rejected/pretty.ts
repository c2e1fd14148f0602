import type { Schemas } from '../../api/client';
import { parse, stringify } from '../../api/json';

/** pretty formats a record's value for people: JSON in lines, anything else unchanged. */
export function pretty(value: Schemas['RecordBytesOrNull']): string {
  if (value === null) {
    return '';
  }
  try {
    return value.encoding === 'text' ? stringify(parse(value.data), 2) : value.data;
  } catch {
    return value.data;
  }
}
