import type { Schemas } from '../../api/client';

interface Slots {
  live: number;
  stopping: number;
  slots: number;
  busy: number | null; // null: an owner does not see how busy workers are
}

/** slotsOf adds up the slots of live workers. */
export function slotsOf(workers: readonly Schemas['Worker'][]): Slots {
  const total: Slots = { live: 0, stopping: 0, slots: 0, busy: 0 };
  for (const worker of workers.filter((worker) => worker.live)) {
    total.live++;
    total.slots += worker.slots;
    total.stopping += worker.stopping ? 1 : 0;
    total.busy = total.busy === null || worker.busy === null ? null : total.busy + worker.busy;
  }
  return total;
}
