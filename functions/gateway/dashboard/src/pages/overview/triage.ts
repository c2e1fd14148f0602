import type { Schemas } from '../../api/client';
import { paths } from '../../app/paths';
import { count, plural } from '../../format/number';
import { duration, relative } from '../../format/time';
import { codeFilterOf, lastDay } from '../dead/groups';

/** Sources is what the overview knows. A part is undefined if the user may not see it, or if it did not arrive. */
export interface Sources {
  stats: Schemas['Stats'];
  groups?: readonly Schemas['DeadGroup'][] | undefined;
  workers?: Schemas['Workers'] | undefined;
  controls?: readonly Schemas['Control'][] | undefined;
  firing?: readonly Schemas['Alert'][] | undefined;
  topics?: readonly Schemas['TopicLag'][] | undefined;
  health?: Schemas['Health'] | undefined;
  oldest?: Pick<Schemas['JobSummary'], 'jobType' | 'queue' | 'blockedBy'> | null | undefined; // the job of stats.oldestWaiting
}

/** Need is a thing that a person has to look at: its subject and the rest of the sentence, with the page to look at. */
export interface Need {
  subject: string;
  text: string;
  href: string;
}

const FAILS_MORE = 3; // times the day before
const FEW_FAILURES = 5; // fewer are no trend
const FAILING_SHARE = 0.2; // of the jobs of a type that ended within an hour
const LONG_WAIT_MS = 10 * 60_000;
const FAR_BEHIND = 10_000; // records
const MOST_NEW = 3;

/** needs returns what needs a person, the most urgent first. */
export function needs(sources: Sources, now: Date): Need[] {
  return [
    ...outages(sources),
    ...alerts(sources, now),
    ...withoutWorkers(sources),
    ...pauses(sources, now),
    ...failures(sources),
    ...newErrors(sources, now),
    ...longWaits(sources),
    ...lags(sources),
  ];
}

function outages({ health, workers, stats }: Sources): Need[] {
  const found: Need[] = [];
  if (health?.components.db.status === 'DOWN') {
    found.push({ subject: 'The database', text: 'does not answer: no job is accepted or read', href: paths.overview() });
  }
  if (health?.components.kafka.status === 'DOWN') {
    found.push({ subject: 'The broker', text: 'does not answer: jobs are accepted, and run when it is back', href: paths.overview() });
  }
  const waiting = stats.jobs.PENDING;
  if (workers && waiting > 0 && !workers.workers.some((worker) => worker.live)) {
    found.push({ subject: 'No worker', text: `lives: ${are(waiting)} waiting`, href: paths.workers() });
  }
  return found;
}

function alerts({ firing = [] }: Sources, now: Date): Need[] {
  return firing.map((alert) => ({
    subject: `Alert ${alert.name}${alert.ownerId === null ? '' : ` of ${alert.ownerId}`}`,
    text:
      `fires: ${count(alert.failed)} of ${plural(alert.ended, 'job')} failed within ${plural(alert.windowMinutes, 'minute')}` +
      (alert.firingSince === null ? '' : `, and it began ${relative(alert.firingSince, now)}`),
    href: paths.alert(alert),
  }));
}

function withoutWorkers({ workers }: Sources): Need[] {
  if (!workers?.workers.some((worker) => worker.live)) {
    return []; // outages has it
  }
  const jobs = new Map<string, number>();
  workers.withoutWorker.forEach((of) => jobs.set(of.jobType, (jobs.get(of.jobType) ?? 0) + of.jobs));
  return [...jobs].map(([jobType, n]) => ({ subject: jobType, text: `has no worker: ${are(n)} waiting`, href: paths.type(jobType) }));
}

function pauses({ controls = [], stats }: Sources, now: Date): Need[] {
  return controls.flatMap(({ kind, name, paused, updatedAt }) => {
    const held = paused ? heldBy(stats, kind, name) : 0;
    if (held === 0) {
      return [];
    }
    const since = updatedAt === null ? '' : ` for at least ${relative(updatedAt, now).replace(/ ago$/, '')}`;
    const holds = held === null ? '' : ` and holds ${plural(held, 'job')}`;
    return [{ subject: subjectOf(kind, name), text: `is paused${since}${holds}`, href: pageOf(kind, name) }];
  });
}

/** heldBy returns how many jobs wait under a pause; null: the statistics do not count them. */
export function heldBy(stats: Schemas['Stats'], kind: Schemas['ControlKind'], name: string): number | null {
  switch (kind) {
    case 'queue':
      return name === '*' ? stats.jobs.PENDING : (stats.queues.find(({ queue }) => queue === name)?.jobs.PENDING ?? 0);
    case 'type':
      return name === '*' ? stats.jobs.PENDING : (stats.types.find(({ jobType }) => jobType === name)?.jobs.PENDING ?? 0);
    default:
      return null;
  }
}

function subjectOf(kind: Schemas['ControlKind'], name: string): string {
  const kinds = { queue: 'queue', type: 'job type', owner: 'owner', fairnessKey: 'fairness key' };
  return name === '*' ? `Each ${kinds[kind]}` : `${kinds[kind]} ${name}`.replace(/^./, (first) => first.toUpperCase());
}

function pageOf(kind: Schemas['ControlKind'], name: string): string {
  if (name !== '*' && kind === 'queue') {
    return paths.queue(name);
  }
  return name !== '*' && kind === 'type' ? paths.type(name) : paths.controls();
}

/** failures finds the types that fail much more than the day before, or with most of their jobs. */
function failures({ groups = [], stats }: Sources): Need[] {
  const types = new Map<string, { today: number; before: number }>();
  for (const group of groups) {
    const sum = types.get(group.jobType) ?? { today: 0, before: 0 };
    types.set(group.jobType, { today: sum.today + lastDay(group), before: sum.before + group.dayBefore });
  }
  const more = [...types]
    .filter(([, { today, before }]) => today >= FEW_FAILURES && before > 0 && today >= FAILS_MORE * before)
    .sort(([, a], [, b]) => b.today - a.today);
  const named = new Set(more.map(([jobType]) => jobType));
  return [
    ...more.map(([jobType, { today, before }]) => ({
      subject: jobType,
      text: `fails ${count(Math.floor(today / before))}× as often as the day before: ${plural(today, 'failure')} in 24 hours`,
      href: paths.dead({ type: jobType, seen: '24h' }),
    })),
    ...stats.failures['1h'].jobTypes
      .filter(({ jobType, failed, ended }) => !named.has(jobType) && failed >= FEW_FAILURES && failed / ended >= FAILING_SHARE)
      .map(({ jobType, failed, ended }) => ({
        subject: jobType,
        text: `fails: ${count(failed)} of the ${plural(ended, 'job')} that ended in the last hour`,
        href: paths.dead({ type: jobType, seen: '1h' }),
      })),
  ];
}

/** newErrors finds the errors that began within the last day. On the first day of an installation, each error is new. */
function newErrors({ groups = [], stats }: Sources, now: Date): Need[] {
  const dayAgo = stats.throughput.hours[0]?.at ?? '';
  if (!stats.throughput.days.some(({ at, completed, failed }) => at < dayAgo.slice(0, 10) && completed + failed > 0)) {
    return [];
  }
  const found = groups.filter((group) => group.new);
  const shown = found
    .toSorted((a, b) => b.lastFailedAt.localeCompare(a.lastFailedAt))
    .slice(0, MOST_NEW)
    .map(({ jobType, errorCode, jobs, lastFailedAt }) => ({
      subject: jobType,
      text: `fails with a new error, ${errorCode ?? 'without a code'}: ${plural(jobs, 'job')}, the last ${relative(lastFailedAt, now)}`,
      href: paths.dead({ type: jobType, ...codeFilterOf(errorCode) }),
    }));
  const more = found.length - shown.length;
  return more === 0 ? shown : [...shown, { subject: plural(more, 'more error'), text: 'did not occur before', href: paths.dead({ seen: '24h' }) }];
}

function longWaits({ stats: { oldestWaiting }, oldest }: Sources): Need[] {
  if (!oldestWaiting || !oldest || oldestWaiting.ageMs < LONG_WAIT_MS || oldest.blockedBy.length > 0) {
    return []; // what blocks it is named by itself, or is as the user wanted it
  }
  return [
    {
      subject: oldest.jobType,
      text: `waits in the queue ${oldest.queue} for ${duration(oldestWaiting.ageMs)}, though nothing blocks it`,
      href: paths.job(oldestWaiting.jobId),
    },
  ];
}

function lags({ topics = [] }: Sources): Need[] {
  return topics.filter(isBehind).map((of) => ({
    subject: of.function,
    text: of.members === 0 ? `does not read ${of.topic}: ${plural(of.records, 'record')} wait` : `is ${plural(of.records, 'record')} behind on ${of.topic}`,
    href: `${paths.overview()}#lag`,
  }));
}

/** isBehind reports whether a function is so far behind a topic that a person should look. */
export function isBehind({ records, members }: Schemas['TopicLag']): boolean {
  return records > FAR_BEHIND || (members === 0 && records > 0);
}

function are(n: number): string {
  return `${plural(n, 'job')} ${n === 1 ? 'is' : 'are'}`;
}
