import { expect, it } from 'vitest';
import type { Schemas } from '../../api/client';
import { groupsOf } from './groups';

const dead = (jobId: string, jobType: string, errorCode: string | null, finishedAt: string) =>
  ({ jobId, jobType, finishedAt, lastError: errorCode && { errorCode, message: 'no' } }) as Schemas['JobSummary'];

it('puts failures of one type and error together, the most frequent first', () => {
  const groups = groupsOf([
    dead('1', 'EMAIL', 'SMTP', '2026-11-23T08:00:00Z'),
    dead('2', 'REPORT', 'SMTP', '2026-11-23T08:00:01Z'),
    dead('3', 'EMAIL', 'SMTP', '2026-11-23T08:00:02Z'),
    dead('4', 'EMAIL', null, '2026-11-23T08:00:03Z'),
  ]);
  expect(groups.map((group) => [group.jobType, group.errorCode, group.jobIds])).toEqual([
    ['EMAIL', 'SMTP', ['1', '3']],
    ['EMAIL', null, ['4']],
    ['REPORT', 'SMTP', ['2']],
  ]);
});
it('shows the newest of a group as its example', () => {
  const [group] = groupsOf([dead('1', 'A', 'X', '2026-11-23T08:00:02Z'), dead('2', 'A', 'X', '2026-11-23T08:00:01Z')]);
  expect(group?.example.jobId).toBe('1');
});
