import type { AlignedData } from 'uplot';
import type { Schemas } from '../../api/client';

export type Span = 'minutes' | 'hours' | 'days';

type Flow = Schemas['Flow'];

/** flowData returns the columns of a plot: the start of each span in seconds, then a column for each series. */
export function flowData(flows: readonly Flow[]): AlignedData {
  return [
    flows.map((flow) => Date.parse(flow.at) / 1000),
    flows.map((flow) => flow.accepted),
    flows.map((flow) => flow.completed),
    flows.map((flow) => flow.failed),
    flows.map((flow) => flow.cancelled),
  ];
}

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
