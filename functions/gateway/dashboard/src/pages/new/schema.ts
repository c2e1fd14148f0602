import { isObject } from '../../api/json';

/** Schema is the part of JSON Schema that the form supports; anything else is edited as JSON. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  contentEncoding?: string;
}

export type Kind = 'object' | 'variants' | 'list' | 'choice' | 'constant' | 'text' | 'number' | 'flag' | 'json';

/** resolve follows references within the document; a broken one allows any value. */
export function resolve(schema: Schema, root: Schema): Schema {
  const name = schema.$ref?.match(/^#\/\$defs\/([^/]+)$/)?.[1];
  if (schema.$ref === undefined) {
    return schema;
  }
  const { $ref: _, ...beside } = schema;
  const target = name === undefined ? undefined : root.$defs?.[name];
  return target === undefined ? beside : { ...resolve(target, root), ...beside };
}

/** kindOf returns how a value of a resolved schema is edited. */
export function kindOf(schema: Schema, root: Schema): Kind {
  if (schema.const !== undefined) {
    return 'constant';
  }
  if (schema.enum) {
    return 'choice';
  }
  if (isVariants(schema, root)) {
    return 'variants';
  }
  switch (schema.type) {
    case 'object':
      return schema.properties ? 'object' : 'json';
    case 'array':
      return schema.items ? 'list' : 'json';
    case 'string':
      return 'text';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'flag';
    default:
      return 'json';
  }
}

/** isVariants: variants are objects that differ by a constant, such as the type of a step. */
function isVariants(schema: Schema, root: Schema): boolean {
  return (schema.oneOf?.length ?? 0) > 0 && variantsOf(schema, root).every((variant) => variant.name !== undefined);
}

export interface Variant {
  name: string | undefined; // the constant
  schema: Schema;
}

export function variantsOf(schema: Schema, root: Schema): Variant[] {
  return (schema.oneOf ?? []).map((each) => {
    const variant = resolve(each, root);
    const constant = Object.values(variant.properties ?? {}).find((property) => typeof property.const === 'string')?.const;
    return { name: constant as string | undefined, schema: variant };
  });
}

/** variantOf returns the variant whose constant a value has, else the first variant. */
export function variantOf(schema: Schema, root: Schema, value: unknown): Variant | undefined {
  const variants = variantsOf(schema, root);
  const values = isObject(value) ? Object.values(value) : [];
  return variants.find((variant) => values.includes(variant.name)) ?? variants[0];
}

/** initial returns a value to begin with: an example, or the required members with empty values. */
export function initial(given: Schema, root: Schema): unknown {
  const schema = resolve(given, root);
  if (schema.examples && schema.examples.length > 0) {
    return schema.examples[0];
  }
  if (schema.const !== undefined) {
    return schema.const;
  }
  if (schema.default !== undefined) {
    return schema.default;
  }
  switch (kindOf(schema, root)) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, initial(schema.properties?.[name] ?? {}, root)]));
    case 'variants':
      return initial(variantsOf(schema, root)[0]?.schema ?? {}, root);
    case 'list':
      return [];
    case 'choice':
      return schema.enum?.[0];
    case 'number':
      return schema.minimum ?? 0;
    case 'flag':
      return false;
    case 'text':
      return '';
    default:
      return {};
  }
}

/** withMember sets a member, or removes it if the value is undefined. */
export function withMember(value: unknown, name: string, member: unknown): Record<string, unknown> {
  const { [name]: _, ...others } = isObject(value) ? value : {};
  if (member === undefined) {
    return others;
  }
  return isObject(value) && name in value ? { ...value, [name]: member } : { ...others, [name]: member };
}

/** childPath returns the path of a member as in the API: payload.steps[3].durationMs. */
export function childPath(path: string, member: string | number): string {
  return typeof member === 'number' ? `${path}[${member}]` : `${path}.${member}`;
}
