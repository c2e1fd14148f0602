import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { reasons } from './waiting';

const blocked = (...blockedBy: [Schemas['Blocker']['kind'], string][]) => ({ blockedBy: blockedBy.map(([kind, id]) => ({ kind, id })) });

it('counts each job once, by what holds it most', () => {
  const sample = [
    blocked(['limit', 'type:A'], ['pause', 'queue:reports']), blocked(['pause', 'queue:reports']), blocked(['order', 'k1']), blocked(['order', 'k2']), blocked(['limit', 'type:A']),
    blocked(),
  ];
  expect(reasons(sample, 6)).toEqual([
    { blocker: { kind: 'pause', id: 'queue:reports' }, jobs: 2 }, { blocker: { kind: 'order', id: '' }, jobs: 2 },
    { blocker: { kind: 'limit', id: 'type:A' }, jobs: 1 }, { blocker: null, jobs: 1 },
  ]);
});
it('estimates the reasons of more jobs than it has seen', () => {
  expect(reasons([blocked(['pause', 'queue:a']), blocked(['pause', 'queue:a']), blocked()], 300)).toEqual([
    { blocker: { kind: 'pause', id: 'queue:a' }, jobs: 200 }, { blocker: null, jobs: 100 },
  ]);
});
it('has no reason without a job', () => {
  expect(reasons([], 0)).toEqual([]);
  expect(reasons([], 5)).toEqual([]);
});
