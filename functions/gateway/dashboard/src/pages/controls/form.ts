/** limit parses a field: empty means no limit. */
export function limit(text: string): number | null {
  return text.trim() === '' ? null : Number(text.replace(',', '.'));
}

/** wrong returns the error of a field that could not be sent as JSON. */
export function wrong(text: string): string | undefined {
  const value = limit(text);
  return value !== null && !Number.isFinite(value) ? 'must be a number, or empty for no limit' : undefined;
}
