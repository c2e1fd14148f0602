import { expect, it } from 'vitest';
import { EDGES, edgesOf, NODES, wayOf } from './diagram';
import type { Job } from './queries';
import { STATUSES } from '../../ui/StatusBadge';

type Move = Job['history'][number];
const move = (from: Move['from'], to: Move['to']): Move => ({ at: '2026-11-23T08:00:00Z', from, to, attempt: 1, by: 'x', reason: null });

it('draws every state once', () => {
  expect(NODES.map((node) => node.status).sort()).toEqual([...STATUSES].sort());
});
it('follows the history to the present state', () => {
  const history = [move(null, 'QUEUED'), move('QUEUED', 'RETRYING'), move('RETRYING', 'QUEUED')];
  expect(wayOf({ history, status: 'RUNNING' })).toEqual(['QUEUED', 'RETRYING', 'QUEUED', 'RUNNING']);
});
it('has the present state only where there is no history', () => {
  expect(wayOf({ history: [], status: 'PENDING' })).toEqual(['PENDING']);
});
it('counts how often a move was taken, and draws moves that are usually not drawn', () => {
  const edges = edgesOf(['QUEUED', 'RUNNING', 'RETRYING', 'QUEUED', 'RUNNING', 'COMPLETED']);
  expect(edges.find((edge) => edge.from === 'QUEUED' && edge.to === 'RUNNING')?.times).toBe(2);
  expect(edges).toContainEqual({ from: 'RETRYING', to: 'QUEUED', times: 1 });
  expect(edges).toHaveLength(EDGES.length + 1);
});
