import type { Schemas } from '../../api/client';
import { count, plural } from '../../format/number';

/** summary returns the number of live workers, and how busy they are if the user may see that. */
export function summary(workers: (Pick<Schemas['Worker'], 'live'> & Load)[]): string {
  const live = workers.filter((worker) => worker.live);
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0);
  const known = live.every((worker) => worker.busy !== null);
  const busy = live.reduce((sum, worker) => sum + (busyOf(worker) ?? 0), 0);
  const taken = known && slots > 0 ? `, ${count(busy)} of them busy` : '';
  return `${plural(live.length, 'live worker')} with ${plural(slots, 'slot')}${taken}.`;
}

type Load = Pick<Schemas['Worker'], 'slots' | 'busy'> & { attempts: readonly { startedAt: string | null }[] };

/** busyOf returns how many slots of a worker are busy: at least those of the listed attempts that run; null: unknown. */
export function busyOf({ slots, busy, attempts }: Load): number | null {
  const run = attempts.filter(({ startedAt }) => startedAt !== null).length;
  return busy === null ? null : Math.max(busy, Math.min(run, slots));
}
