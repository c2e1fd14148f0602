import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { answer, api } from '../api/client';
import { useMay } from '../api/me';
import { ownersQuery } from '../api/owners';
import { statsQuery } from '../api/queries';
import { useOwner } from '../api/session';
import type { Command } from './commands';
import { paths } from './paths';
import { actFor } from './router';
import { idOf, nextId } from './searches';

const EACH = 4; // commands of a kind
const NEWEST = 50; // batches and flows, whose names are searched
const SCHEDULES = 200;
const ALERTS = 200;
const AGE_MS = 30_000;

type Go = (path: string) => void;

/** useFound returns commands that open what has a typed name or id. */
export function useFound(text: string, go: Go): Command[] {
  const wanted = text.trim();
  const id = idOf(wanted);
  const named = useNamed(id === null && wanted.length > 1 ? wanted : '', go);
  const known = useKnown(id ?? '', go);
  return id === null ? named : known;
}

function useNamed(wanted: string, go: Go): Command[] {
  const may = useMay();
  const on = wanted !== '' && may('read');
  const options = { enabled: on, staleTime: AGE_MS, placeholderData: keepPreviousData };
  const stats = useQuery({ ...statsQuery, ...options });
  const acting = useOwner() !== null; // then the user's own rights are those of that owner
  const owners = useQuery({ ...ownersQuery(wanted, EACH), enabled: on && (acting || may('installation')) });
  // Schedules are listed by name: those after a name are near it.
  const near = /^[a-z0-9][a-z0-9._-]*$/.test(wanted) && wanted.length > 2 ? `${wanted.slice(0, -1)}:` : null;
  const schedules = useQuery({
    ...options,
    queryKey: ['schedules', 'found', near],
    queryFn: async ({ signal }) => {
      const ask = async (cursor: string | null) =>
        (await answer(api.GET('/api/schedules', { params: { query: { limit: SCHEDULES, ...(cursor !== null && { cursor }) } }, signal }))).schedules;
      return [...(await ask(null)), ...(near === null ? [] : await ask(near))];
    },
  });
  const alerts = useQuery({
    ...options,
    queryKey: ['alerts', 'found'],
    queryFn: async ({ signal }) => (await answer(api.GET('/api/alerts', { params: { query: { limit: ALERTS } }, signal }))).alerts,
  });
  const batches = useQuery({
    ...options,
    queryKey: ['batches', 'found'],
    queryFn: async ({ signal }) => (await answer(api.GET('/api/batches', { params: { query: { limit: NEWEST } }, signal }))).batches,
  });
  const flows = useQuery({
    ...options,
    queryKey: ['flows', 'found'],
    queryFn: async ({ signal }) => (await answer(api.GET('/api/flows', { params: { query: { limit: NEWEST } }, signal }))).flows,
  });
  if (!on) {
    return [];
  }
  const has = (name: string | null) => name !== null && name.toLowerCase().includes(wanted.toLowerCase());
  const some = <T>(all: readonly T[] | undefined, name: (of: T) => string | null, command: (of: T) => Command) => {
    const fitting = (all ?? []).filter((each) => has(name(each)));
    const once = new Map(fitting.map((each) => command(each)).map((each) => [each.name, each])); // a command's name is its key
    return [...once.values()].slice(0, EACH);
  };
  return [
    ...some(stats.data?.types, (of) => of.jobType, ({ jobType }) => ({ name: `Job type ${jobType}`, icon: 'jobs', run: () => go(paths.type(jobType)) })),
    ...some(stats.data?.queues, (of) => of.queue, ({ queue }) => ({ name: `Queue ${queue}`, icon: 'jobs', run: () => go(paths.queue(queue)) })),
    ...some(stats.data?.failures['30d'].errorCodes, (of) => of.errorCode, ({ errorCode }) => ({
      name: `Failed with ${errorCode}`, icon: 'dead', run: () => go(paths.jobs({ status: 'FAILED', errorCode: errorCode ?? '' })),
    })),
    ...some(schedules.data, (of) => of.name, (schedule) => ({
      name: `Schedule ${schedule.name}${schedule.ownerId === null ? '' : ` of ${schedule.ownerId}`}`, icon: 'schedules', run: () => go(paths.schedule(schedule)),
    })),
    ...some(alerts.data, (of) => of.name, (alert) => ({
      name: `Alert ${alert.name}${alert.ownerId === null ? '' : ` of ${alert.ownerId}`}`, icon: 'alerts', run: () => go(paths.alert(alert)),
    })),
    ...some(owners.data?.owners, (of) => of, (owner) => ({ name: `Act for the owner ${owner}`, icon: 'keys', run: () => actFor(owner) })),
    ...some(flows.data, (of) => of.name, ({ name, flowId }) => ({ name: `Flow ${name} ${flowId.slice(-12)}`, icon: 'flows', run: () => go(paths.flow(flowId)) })),
    ...some(batches.data, (of) => of.name, ({ name, batchId }) => ({
      name: `Batch ${name} ${batchId.slice(-12)}`, icon: 'batches', run: () => go(paths.batch(batchId)),
    })),
  ];
}

/** useKnown looks for an id in the lists of all that has one: an id that is none of a list's is no error there. */
function useKnown(id: string, go: Go): Command[] {
  const may = useMay();
  const found = useQuery({
    queryKey: ['known', id],
    queryFn: async ({ signal }): Promise<{ name: string; icon: Command['icon']; path: string }[]> => {
      const query = { limit: 1, cursor: nextId(id) }; // the lists go down from it
      const [jobs, flows, batches, operations] = await Promise.all([
        answer(api.GET('/api/jobs', { params: { query: { q: id, limit: 1 } }, signal })),
        answer(api.GET('/api/flows', { params: { query }, signal })),
        answer(api.GET('/api/batches', { params: { query }, signal })),
        answer(api.GET('/api/operations', { params: { query }, signal })),
      ]);
      const job = jobs.jobs[0];
      const isFlow = flows.flows[0]?.flowId === id;
      return [
        ...(job?.jobId === id ? [{ name: `Open the job ${id}`, icon: 'jobs' as const, path: paths.job(id) }] : []),
        ...(isFlow ? [{ name: `Open the flow ${id}`, icon: 'flows' as const, path: paths.flow(id) }] : []),
        ...(!isFlow && batches.batches[0]?.batchId === id ? [{ name: `Open the batch ${id}`, icon: 'batches' as const, path: paths.batch(id) }] : []),
        ...(operations.operations[0]?.operationId === id ? [{ name: `Open the operation ${id}`, icon: 'operations' as const, path: paths.operation(id) }] : []),
        ...(job !== undefined && job.jobId !== id ? [{ name: `Jobs with the id ${id} as trace or key`, icon: 'search' as const, path: paths.jobs({ q: id }) }] : []),
      ];
    },
    enabled: id !== '' && may('read'),
    staleTime: AGE_MS,
  });
  return id === '' ? [] : (found.data ?? []).map(({ path, ...command }) => ({ ...command, run: () => go(path) }));
}
