import type { Schemas } from '../../api/client';

/** pretty formats a record's value for people: JSON in lines, anything else unchanged. */
export function pretty(value: Schemas['RecordBytesOrNull']): string {
  if (value === null) {
    return '';
  }
  try {
    return value.encoding === 'text' ? JSON.stringify(JSON.parse(value.data), null, 2) : value.data;
  } catch {
    return value.data;
  }
}
