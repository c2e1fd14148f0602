import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../api/client';
import { useAction } from '../../api/useAction';

export type Alert = Schemas['Alert'];
export type AlertRequest = Schemas['AlertRequest'];

/** named returns the parameters that name an alert: several owners may have one of the same name. */
export function named(alert: { name: string; ownerId: string | null }) {
  const query = alert.ownerId === null ? {} : { ownerId: alert.ownerId };
  return { params: { path: { name: alert.name }, query } };
}

/** firingQuery reads the alerts that fire. */
export const firingQuery = queryOptions({
  queryKey: ['alerts', 'firing'],
  queryFn: ({ signal }) => answer(api.GET('/api/alerts', { params: { query: { state: 'FIRING', limit: 20 } }, signal })),
});

/** read returns an alert, and the tag with which its change is refused if it has changed since. */
export async function read(which: { name: string; ownerId: string | null }): Promise<{ alert: Alert; tag: string }> {
  const result = await api.GET('/api/alerts/{name}', named(which));
  return { alert: await answer(Promise.resolve(result)), tag: result.response.headers.get('ETag') ?? '' };
}

const CHANGES = ['alerts', 'alert', 'notices', 'jobs'];

export function useTest() {
  return useAction({
    run: (alert: Alert) => answer(api.POST('/api/alerts/{name}/test', named(alert))),
    done: ({ jobId }, { name }) => `${name} sends a test notice by the job ${jobId}.`,
    changes: CHANGES,
  });
}

/** usePausing pauses an alert, or resumes one that is paused. */
export function usePausing() {
  const action = useAction({
    run: ({ alert, pause }: { alert: Alert; pause: boolean }) =>
      answer(pause ? api.POST('/api/alerts/{name}/pause', named(alert)) : api.POST('/api/alerts/{name}/resume', named(alert))),
    done: (_, { alert, pause }) => (pause ? `${alert.name} is paused.` : `${alert.name} looks at failures again.`),
    undo: (_, { alert, pause }) => ({ label: 'Undo', run: () => action.mutate({ alert, pause: !pause }) }),
    changes: CHANGES,
  });
  return action;
}

/** Save is an alert to make, or one to change, which then keeps its owner. */
interface Save {
  body: AlertRequest;
  tag?: string | undefined; // of the alert that the user has read
  of?: Alert | undefined;
}

export function useSave() {
  return useAction({
    run: ({ tag, body, of }: Save) =>
      of === undefined
        ? answer(api.POST('/api/alerts', { body }))
        : answer(
            api.PUT('/api/alerts/{name}', {
              params: { ...named(of).params, header: tag === undefined ? {} : { 'If-Match': tag } },
              body,
            }),
          ),
    done: (alert, { of }) => `${alert.name} is ${of === undefined ? 'created' : 'changed'}.`,
    changes: CHANGES,
    quiet: true,
  });
}

export function useDelete() {
  return useAction({
    run: (alert: Alert) => answer(api.DELETE('/api/alerts/{name}', named(alert))),
    done: (_, { name }) => `${name} is deleted.`,
    changes: ['alerts', 'jobs'], // the alert itself is gone
  });
}
