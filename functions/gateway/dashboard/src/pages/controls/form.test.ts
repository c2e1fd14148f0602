import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from '../../api/json';
import { draft, limit, toRequest, wrong } from './form';
import type { Control } from './queries';

// The samples of a gateway test, which holds that they name every member of the contract, and that a control shows them.
const { controls } = parse(readFileSync(join(import.meta.dirname, '../../../../testdata/members.json'), 'utf8')) as { controls: Control[] };

it.each(controls)('keeps what it does not change', (sample) => {
  const form = draft({ ...sample, kind: 'fairnessKey', name: 'k' }, 'queue', '');
  expect(toRequest(form)).toEqual(sample);
  expect(toRequest({ ...form, most: '9' })).toEqual({ ...sample, maxRunning: 9 });
});

it('reads an empty field as no limit, and nought as a limit', () => {
  expect(limit('')).toBeNull();
  expect(limit(' ')).toBeNull();
  expect(limit('0')).toBe(0);
});
it('takes a comma for a point', () => {
  expect(limit('0,5')).toBe(0.5);
});
it('refuses what is no number', () => {
  expect(wrong('many')).toContain('must be a number');
  expect(wrong('1e999')).toContain('must be a number');
  expect(wrong('')).toBeUndefined();
  expect(wrong('2.5')).toBeUndefined();
});
