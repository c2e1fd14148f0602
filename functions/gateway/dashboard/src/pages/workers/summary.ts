import type { Schemas } from '../../api/client';
import { count, plural } from '../../format/number';

/** summary returns the number of live workers, and how busy they are if the user may see that. */
export function summary(workers: Pick<Schemas['Worker'], 'live' | 'slots' | 'busy'>[]): string {
  const live = workers.filter((worker) => worker.live);
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0);
  const known = live.every((worker) => worker.busy !== null);
  const busy = live.reduce((sum, worker) => sum + (worker.busy ?? 0), 0);
  const taken = known && slots > 0 ? `, ${count(busy)} of them busy` : '';
  return `${plural(live.length, 'live worker')} with ${plural(slots, 'slot')}${taken}.`;
}
