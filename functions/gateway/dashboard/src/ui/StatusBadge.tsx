import type { Schemas } from '../api/client';
import './StatusBadge.css';

export type Status = Schemas['Status'];

/** STATUSES are all states, in the order in which a job passes through them. */
export const STATUSES: readonly Status[] = [
  'SCHEDULED',
  'PENDING',
  'QUEUED',
  'RUNNING',
  'WAITING',
  'RETRYING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
];

export const ENDED: readonly Status[] = ['COMPLETED', 'FAILED', 'CANCELLED'];

export const MEANING: Record<Status, string> = {
  SCHEDULED: 'its time has not come',
  PENDING: 'due, waits for a worker or for what blocks it',
  QUEUED: 'sent to a worker',
  RUNNING: 'a worker runs it',
  WAITING: 'an outside system works on it',
  RETRYING: 'failed, runs again later',
  COMPLETED: 'ended well',
  FAILED: 'ended after its last failure: a dead letter',
  CANCELLED: 'ended because it was cancelled or expired, or a job that it depends on failed',
};

interface Props {
  status: Status;
  label?: string; // in place of the state's own name
  meaning?: string;
}

export function StatusBadge({ status, label = status, meaning = MEANING[status] }: Props) {
  return (
    <span className={`status status-${status.toLowerCase()}`} title={meaning}>
      <span className="status-dot" aria-hidden="true" />
      {label}
    </span>
  );
}
