/** dataFor makes data that has the members of a match, which names them by their paths: order.id. */
export function dataFor(match: Record<string, unknown>): Record<string, unknown> {
  const data: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(match)) {
    const names = path.split('.');
    let at = data;
    for (const name of names.slice(0, -1)) {
      const inner = Object.hasOwn(at, name) ? at[name] : undefined;
      at = (at[name] = typeof inner === 'object' && inner !== null ? inner : {}) as Record<string, unknown>;
    }
    at[names.at(-1)!] = value;
  }
  return data;
}
