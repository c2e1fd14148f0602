import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useParams, useRouter, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { stringify } from '../../api/json';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { inZone, withSeconds } from '../../format/zone';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { Fold } from '../../ui/Fold';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import '../../ui/form.css';
import { named, read, type Schedule, useDelete } from './queries';
import { ScheduleForm } from './ScheduleForm';
import { Next, ScheduleActions } from './SchedulesPage';

const OVERLAP = { allow: 'starts another', skip: 'skips the time', cancel: 'cancels it and starts another' };
const MISSED = { skip: 'are skipped', one: 'run once, for the last one', all: 'all run, up to 1,000' };

export default function SchedulePage() {
  const { name = '' } = useParams({ strict: false }) as { name?: string };
  const { ownerId } = useSearch({ strict: false }) as { ownerId?: string };
  const which = { name, ownerId: ownerId ?? null };
  const polling = usePolling(10_000);
  const found = useQuery({
    queryKey: ['schedule', name, ownerId],
    queryFn: () => read(which),
    refetchInterval: polling,
  });
  const schedule = found.data?.schedule;
  return (
    <div className="stack">
      <PageHeader title={name} lead={<Link href={paths.schedules()}>All schedules</Link>}>
        {found.data && <Actions {...found.data} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {schedule && (
        <>
          <About schedule={schedule} />
          <Upcoming schedule={schedule} />
          <Ticks schedule={schedule} />
        </>
      )}
    </div>
  );
}

function Actions({ schedule, tag }: { schedule: Schedule; tag: string }) {
  const may = useMay();
  const router = useRouter();
  const remove = useDelete();
  const [editing, setEditing] = useState(false);
  if (!may('operate')) {
    return null;
  }
  return (
    <>
      <ScheduleActions schedule={schedule} />
      {schedule.definedBy === null && (
        <Button small icon="edit" onClick={() => setEditing(true)}>
          Edit
        </Button>
      )}
      <Button
        small
        variant="danger"
        icon="trash"
        busy={remove.isPending}
        onClick={() => remove.mutate(schedule, { onSuccess: () => router.history.push(paths.schedules()) })}
      >
        Delete
      </Button>
      {editing && <ScheduleForm schedule={schedule} tag={tag} onClose={() => setEditing(false)} />}
    </>
  );
}

function About({ schedule }: { schedule: Schedule }) {
  const { job } = schedule;
  return (
    <Card title="When and what">
      <Facts>
        <Fact name="Cron">
          <code>{schedule.cron}</code>
        </Fact>
        <Fact name="Time zone">{schedule.timeZone}</Fact>
        <Fact name="Next">
          <Next schedule={schedule} />
        </Fact>
        {schedule.ownerId !== null && <Fact name="Owner">{schedule.ownerId}</Fact>}
        <Fact name="While its last job runs">it {OVERLAP[schedule.overlap]}</Fact>
        <Fact name="Times that were missed">{MISSED[schedule.missed]}</Fact>
        {schedule.startAt !== null && <Fact name="From">{inZone(schedule.startAt, schedule.timeZone)}</Fact>}
        {schedule.endAt !== null && <Fact name="Until">{inZone(schedule.endAt, schedule.timeZone)}</Fact>}
        {schedule.definedBy !== null && (
          <Fact name="Defined in code by">
            <Link href={paths.type(schedule.definedBy)}>{schedule.definedBy}</Link>. Its worker changes it; you can pause it.
          </Fact>
        )}
        <Fact name="Changed">
          <RelativeTime at={schedule.updatedAt} />
        </Fact>
      </Facts>
      {job === null ? (
        <p className="muted">Its job is sealed by a key that this installation does not have.</p>
      ) : (
        <Fold title="The job that it submits">{() => <Code label="the job" text={stringify(job, 2)} />}</Fold>
      )}
    </Card>
  );
}

function Upcoming({ schedule }: { schedule: Schedule }) {
  const times = schedule.upcoming;
  const seconds = withSeconds(times);
  return (
    <Card title={times.length === 1 ? 'The next time' : `The next ${times.length || ''} times`}>
      {times.length === 0 && (
        <p className="muted">{schedule.paused ? 'None while it is paused.' : 'None: its last time has passed.'}</p>
      )}
      <ol className="stack-small">
        {times.map((at) => (
          <li key={at}>
            <time dateTime={at}>{inZone(at, schedule.timeZone, seconds)}</time>{' '}
            <span className="muted">
              <RelativeTime at={at} />
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Ticks({ schedule }: { schedule: Schedule }) {
  const polling = usePolling(10_000);
  const where = named(schedule).params;
  const list = useInfiniteQuery({
    queryKey: ['ticks', schedule.name, schedule.ownerId],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/schedules/{name}/ticks', {
          params: { ...where, query: { ...where.query, limit: 20, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const ticks = list.data?.pages.flatMap((page) => page.ticks) ?? [];
  const seconds = withSeconds(ticks.map(({ at }) => at));
  return (
    <Card title="The last times" flush={ticks.length > 0}>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={4} />}
      {list.isSuccess && ticks.length === 0 && <p className="muted">It has not fired yet. “Run now” submits its job at once.</p>}
      {ticks.length > 0 && (
        <>
          <Table caption="Times, the latest first" cards>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">What happened</th>
                <th scope="col">Job</th>
              </tr>
            </thead>
            <tbody>
              {ticks.map((tick) => (
                <tr key={`${tick.at}${tick.jobId ?? ''}`}>
                  <td>
                    <time dateTime={tick.at}>{inZone(tick.at, schedule.timeZone, seconds)}</time>
                  </td>
                  <td>
                    <Badge tone={tick.outcome === 'fired' ? 'good' : 'warn'}>{tick.outcome}</Badge>{' '}
                    {tick.reason !== null && <span className="muted">{tick.reason === 'manual' ? 'by hand' : tick.reason}</span>}
                  </td>
                  <td className={tick.jobId === null ? 'cell-empty' : ''}>{tick.jobId === null ? '–' : <Link href={paths.job(tick.jobId)}>{tick.jobId}</Link>}</td>
                </tr>
              ))}
            </tbody>
          </Table>
          <LoadMore
            shown={ticks.length}
            one="time"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </>
      )}
    </Card>
  );
}
