import { expect, it } from 'vitest';
import { pretty } from './pretty';

it('shows JSON in lines, and anything else as it is', () => {
  expect(pretty({ encoding: 'text', data: '{"a":1}' })).toBe('{\n  "a": 1\n}');
  expect(pretty({ encoding: 'text', data: '{"a":' })).toBe('{"a":');
  expect(pretty({ encoding: 'base64', data: 'MTc=' })).toBe('MTc=');
  expect(pretty(null)).toBe('');
});
