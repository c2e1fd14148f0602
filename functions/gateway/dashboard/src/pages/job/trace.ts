/** traceAddress returns the address of a trace in the trace UI, which uses 32 hexadecimal digits as its id. */
export function traceAddress(traceUrl: string, traceId: string): string {
  return traceUrl.replaceAll('{traceId}', traceId.replaceAll('-', ''));
}
