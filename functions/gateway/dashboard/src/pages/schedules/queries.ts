import { useAction } from '../../api/useAction';
import { answer, api, type Schemas } from '../../api/client';

export type Schedule = Schemas['Schedule'];
export type ScheduleRequest = Schemas['ScheduleRequest'];

/** named returns the parameters that name a schedule: several owners may have one of the same name. */
export function named(schedule: { name: string; ownerId: string | null }) {
  const query = schedule.ownerId === null ? {} : { ownerId: schedule.ownerId };
  return { params: { path: { name: schedule.name }, query } };
}

/** request returns the request that would create the schedule; null if its job is sealed and cannot be shown. */
export function request(schedule: Schedule): ScheduleRequest | null {
  const { name, cron, timeZone, job, overlap, missed, paused, startAt, endAt } = schedule;
  if (job === null) {
    return null;
  }
  return {
    name, cron, timeZone, overlap, missed, paused,
    job: job as unknown as ScheduleRequest['job'],
    ...(startAt === null ? {} : { startAt }),
    ...(endAt === null ? {} : { endAt }),
  };
}

/** read returns a schedule, and the tag with which its change is refused if it has changed since. */
export async function read(which: { name: string; ownerId: string | null }): Promise<{ schedule: Schedule; tag: string }> {
  const result = await api.GET('/api/schedules/{name}', named(which));
  return { schedule: await answer(Promise.resolve(result)), tag: result.response.headers.get('ETag') ?? '' };
}

const CHANGES = ['schedules', 'schedule', 'ticks', 'jobs'];

export function useRunNow() {
  return useAction({
    run: (schedule: Schedule) => answer(api.POST('/api/schedules/{name}/run', named(schedule))),
    done: ({ jobId }, { name }) => `${name} runs now as the job ${jobId}.`,
    changes: CHANGES,
  });
}

/** usePausing pauses a schedule that fires, and resumes one that is paused. */
export function usePausing() {
  const action = useAction({
    run: ({ schedule, pause }: { schedule: Schedule; pause: boolean }) =>
      answer(
        pause
          ? api.POST('/api/schedules/{name}/pause', named(schedule))
          : api.POST('/api/schedules/{name}/resume', named(schedule)),
      ),
    done: (_, { schedule, pause }) => (pause ? `${schedule.name} is paused.` : `${schedule.name} fires again.`),
    undo: (_, { schedule, pause }) => ({ label: 'Undo', run: () => action.mutate({ schedule, pause: !pause }) }),
    changes: CHANGES,
  });
  return action;
}

/** Save is a schedule to make, or one to change or to make again, which then keeps its owner. */
interface Save {
  body: ScheduleRequest;
  tag?: string | undefined; // of the schedule that the user has read
  of?: Schedule | undefined;
}

export function useSave() {
  return useAction({
    run: ({ tag, body, of }: Save) =>
      of === undefined
        ? answer(api.POST('/api/schedules', { body }))
        : answer(
            api.PUT('/api/schedules/{name}', {
              params: { ...named({ name: body.name ?? '', ownerId: of.ownerId }).params, header: tag === undefined ? {} : { 'If-Match': tag } },
              body,
            }),
          ),
    done: (schedule, { tag }) => `${schedule.name} is ${tag === undefined ? 'created' : 'changed'}.`,
    changes: CHANGES,
    quiet: true,
  });
}

/** useDelete deletes a schedule. Undo creates it again, without its ticks. */
export function useDelete() {
  const again = useSave();
  return useAction({
    run: (schedule: Schedule) => answer(api.DELETE('/api/schedules/{name}', named(schedule))),
    done: (_, { name }) => `${name} is deleted. Its jobs stay.`,
    undo: (_, schedule) => {
      const body = request(schedule);
      return body === null ? undefined : { label: 'Undo', run: () => again.mutate({ body, of: schedule }) };
    },
    changes: ['schedules', 'jobs'], // the schedule itself is gone
  });
}
