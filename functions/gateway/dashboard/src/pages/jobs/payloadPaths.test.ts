import { expect, it } from 'vitest';
import { payloadPaths } from './payloadPaths';

it('lists the paths to the values that a schema describes', () => {
  expect(
    payloadPaths({
      $defs: { Line: { properties: { sku: { type: 'string' }, 'full name': {}, of: { $ref: '#/$defs/Line' } } } },
      properties: {
        orderId: { type: 'string' },
        customer: { oneOf: [{ properties: { id: { type: 'integer' } } }, { properties: { id: {}, mail: {} } }] },
        lines: { type: 'array', items: { $ref: '#/$defs/Line' } },
        raw: { type: 'object' },
      },
    }),
  ).toEqual(['orderId', 'customer.id', 'customer.mail', 'lines[0].sku', 'lines[0].of.sku']);
  expect(payloadPaths({ type: 'string' })).toEqual([]);
});
