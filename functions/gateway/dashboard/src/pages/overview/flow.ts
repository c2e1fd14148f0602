import type { Schemas } from '../../api/client';

export type Span = 'minutes' | 'hours' | 'days';

type Flow = Schemas['Flow'];

export function sum(flows: readonly Flow[]): Omit<Flow, 'at'> {
  const total = { accepted: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const flow of flows) {
    total.accepted += flow.accepted;
    total.completed += flow.completed;
    total.failed += flow.failed;
    total.cancelled += flow.cancelled;
  }
  return total;
}
