import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { type Schedule, usePausing, useRunNow } from './queries';
import { ScheduleForm } from './ScheduleForm';

export default function SchedulesPage() {
  const may = useMay();
  const [creating, setCreating] = useState(false);
  const polling = usePolling(10_000);
  const list = useInfiniteQuery({
    queryKey: ['schedules'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/schedules', { params: { query: { limit: 100, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const schedules = list.data?.pages.flatMap((page) => page.schedules) ?? [];
  const create = may('operate') && (
    <Button icon="new" variant="primary" onClick={() => setCreating(true)}>
      New schedule
    </Button>
  );

  return (
    <div className="stack">
      <PageHeader title="Schedules" lead="Jobs at the times of cron expressions, and their next times.">
        {schedules.length > 0 && create}
      </PageHeader>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && schedules.length === 0 && (
        <EmptyState icon="schedules" title="No schedule yet" action={create}>
          A schedule submits its job at each time of a cron expression, by the clocks of a time zone: a report each morning, a
          clean-up each night. It also sets what happens while the previous job still runs, and after missed times.
        </EmptyState>
      )}
      {schedules.length > 0 && (
        <Card flush>
          <List schedules={schedules} />
          <LoadMore
            shown={schedules.length}
            one="schedule"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
      {creating && <ScheduleForm onClose={() => setCreating(false)} />}
    </div>
  );
}

function List({ schedules }: { schedules: Schedule[] }) {
  const may = useMay();
  const owners = schedules.some((schedule) => schedule.ownerId !== schedules[0]?.ownerId);
  return (
    <Table caption="Schedules" cards>
      <thead>
        <tr>
          <th scope="col">Name</th>
          {owners && <th scope="col">Owner</th>}
          <th scope="col">Cron</th>
          <th scope="col">Next</th>
          <th scope="col">Last</th>
          {may('operate') && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {schedules.map((schedule) => (
          <tr key={`${schedule.ownerId ?? ''}:${schedule.name}`}>
            <td className="cell-title">
              <Link href={paths.schedule(schedule)}>
                <bdi>{schedule.name}</bdi>
              </Link>
            </td>
            {owners && (
              <td data-label="Owner" className={schedule.ownerId === null ? 'cell-empty' : ''}>
                {schedule.ownerId ?? '–'}
              </td>
            )}
            <td className="cell-whole">
              <code>{schedule.cron}</code> <span className="muted">{schedule.timeZone}</span>
            </td>
            <td data-label="Next">
              <Next schedule={schedule} />
            </td>
            <td data-label="Last" className={schedule.lastAt === null ? 'cell-empty' : ''}>
              {schedule.lastJobId === null ? (
                <RelativeTime at={schedule.lastAt} />
              ) : (
                <Link href={paths.job(schedule.lastJobId)}>
                  <RelativeTime at={schedule.lastAt} />
                </Link>
              )}
            </td>
            {may('operate') && (
              <td className="cell-whole">
                <ScheduleActions schedule={schedule} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function Next({ schedule }: { schedule: Schedule }) {
  if (schedule.paused) {
    return <Badge tone="warn">paused</Badge>;
  }
  return schedule.nextAt === null ? <Badge>over</Badge> : <RelativeTime at={schedule.nextAt} />;
}

export function ScheduleActions({ schedule }: { schedule: Schedule }) {
  const runNow = useRunNow();
  const pausing = usePausing();
  return (
    <div className="row-wrap">
      <Button
        small
        icon="play"
        busy={runNow.isPending}
        aria-label={`Run now: ${schedule.name}`}
        onClick={() => runNow.mutate(schedule)}
      >
        Run now
      </Button>
      <Button
        small
        icon={schedule.paused ? 'clock' : 'pause'}
        busy={pausing.isPending}
        aria-label={`${schedule.paused ? 'Resume' : 'Pause'} ${schedule.name}`}
        onClick={() => pausing.mutate({ schedule, pause: !schedule.paused })}
      >
        {schedule.paused ? 'Resume' : 'Pause'}
      </Button>
    </div>
  );
}
