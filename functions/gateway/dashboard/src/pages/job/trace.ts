/** traceAddress is where the trace UI shows a trace. It knows traces by their 32 hexadecimal digits. */
export function traceAddress(traceUrl: string, traceId: string): string {
  return traceUrl.replaceAll('{traceId}', traceId.replaceAll('-', ''));
}
