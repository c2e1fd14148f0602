import { expect, it } from 'vitest';
import { traceAddress } from './trace';

it('puts the digits of the trace id where the address has their place', () => {
  expect(traceAddress('https://t.example.org/{traceId}?id={traceId}', '0af76519-16cd-43dd-8448-eb211c80319c')).toBe(
    'https://t.example.org/0af7651916cd43dd8448eb211c80319c?id=0af7651916cd43dd8448eb211c80319c',
  );
});
