/** randomKey returns a new idempotency key. crypto.randomUUID would need HTTPS, which a gateway on a private network may not have. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `dashboard-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
