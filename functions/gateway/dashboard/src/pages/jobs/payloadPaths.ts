import { resolve, type Schema } from '../new/schema';

const DEEPEST = 4;

/** payloadPaths returns the paths to the values in a payload by which a list can filter, as far as a schema describes them. */
export function payloadPaths(root: Schema): string[] {
  const paths = new Set<string>();
  const walk = (part: Schema, path: string, depth: number) => {
    const { properties, items, oneOf, type } = resolve(part, root);
    if (depth > DEEPEST) {
      return;
    }
    for (const [name, member] of Object.entries(properties ?? {})) {
      if (/^[\w-]+$/.test(name)) {
        walk(member, path === '' ? name : `${path}.${name}`, depth + 1);
      }
    }
    if (items) {
      walk(items, `${path}[0]`, depth + 1);
    }
    oneOf?.forEach((variant) => walk(variant, path, depth));
    if (path !== '' && !properties && !items && !oneOf && type !== 'object') {
      paths.add(path);
    }
  };
  walk(root, '', 0);
  return [...paths];
}
