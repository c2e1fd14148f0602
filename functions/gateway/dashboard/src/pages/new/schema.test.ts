import { describe, expect, it } from 'vitest';
import { childPath, initial, kindOf, resolve, variantOf, withMember, type Schema } from './schema';

const simulation: Schema = {
  type: 'object',
  required: ['steps'],
  properties: { steps: { type: 'array', items: { oneOf: [{ $ref: '#/$defs/sleep' }, { $ref: '#/$defs/log' }] } } },
  $defs: {
    sleep: { type: 'object', required: ['type', 'ms'], properties: { type: { const: 'SLEEP' }, ms: { type: 'integer', minimum: 1 } } },
    log: { type: 'object', required: ['type', 'text'], properties: { type: { const: 'LOG' }, text: { type: 'string' } } },
  },
};
const step = simulation.properties?.['steps']?.items ?? {};

describe('a schema', () => {
  it('is resolved within its document, and keeps what stands beside the reference', () => {
    expect(resolve({ $ref: '#/$defs/log', title: 'Line' }, simulation)).toMatchObject({ type: 'object', title: 'Line' });
    expect(resolve({ $ref: 'https://example.org/x', title: 'X' }, simulation)).toEqual({ title: 'X' });
  });
  it('selects how its value is edited', () => {
    const kind = (schema: Schema) => kindOf(schema, simulation);
    expect(kind(simulation)).toBe('object');
    expect(kind(step)).toBe('variants');
    expect(kind({ enum: ['a'] })).toBe('choice');
    expect(kind({ type: 'integer' })).toBe('number');
    expect(kind({ type: 'boolean' })).toBe('flag');
  });
  it('is edited as JSON where the form does not know it', () => {
    expect(kindOf({}, simulation)).toBe('json');
    expect(kindOf({ type: ['array', 'object'] }, simulation)).toBe('json');
    expect(kindOf({ oneOf: [{ type: 'string' }, { type: 'integer' }] }, simulation)).toBe('json');
    expect(kindOf({ type: 'object' }, simulation)).toBe('json');
  });
});

describe('a value', () => {
  it('begins with what is required', () => {
    expect(initial(simulation, simulation)).toEqual({ steps: [] });
    expect(initial(step, simulation)).toEqual({ type: 'SLEEP', ms: 1 });
  });
  it('begins with an example where there is one', () => {
    expect(initial({ ...simulation, examples: [{ steps: [1] }] }, simulation)).toEqual({ steps: [1] });
  });
  it('is of the variant whose constant it has', () => {
    expect(variantOf(step, simulation, { type: 'LOG', text: 'hi' })?.name).toBe('LOG');
    expect(variantOf(step, simulation, null)?.name).toBe('SLEEP');
  });
  it('keeps the order of its members when one changes, and loses one that is empty', () => {
    expect(Object.keys(withMember({ a: 1, b: 2 }, 'a', 3))).toEqual(['a', 'b']);
    expect(withMember({ a: 1, b: 2 }, 'a', undefined)).toEqual({ b: 2 });
    expect(withMember(null, 'a', 1)).toEqual({ a: 1 });
  });
  it('has the places that the API names in its messages', () => {
    expect(childPath(childPath(childPath('payload', 'steps'), 3), 'durationMs')).toBe('payload.steps[3].durationMs');
  });
});
