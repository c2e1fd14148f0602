import { useInfiniteQuery } from '@tanstack/react-query';
import { useRouter, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count } from '../../format/number';
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
import { AlertForm } from './AlertForm';
import './Alerts.css';
import { destination, subject, threshold } from './form';
import { type Alert, usePausing } from './queries';

export default function AlertsPage() {
  const may = useMay();
  const router = useRouter();
  const asked = useSearch({ strict: false }) as { new?: string; jobType?: string; queue?: string }; // by a link of another page
  const [creating, setCreating] = useState(asked.new !== undefined && may('operate'));
  const polling = usePolling(10_000);
  const list = useInfiniteQuery({
    queryKey: ['alerts'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/alerts', { params: { query: { limit: 100, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const alerts = list.data?.pages.flatMap((page) => page.alerts) ?? [];
  const create = may('operate') && (
    <Button icon="new" variant="primary" onClick={() => setCreating(true)}>
      New alert
    </Button>
  );

  return (
    <div className="stack">
      <PageHeader title="Alerts" lead="Notices to Slack, to a webhook or by mail when jobs fail, and when that is over.">
        {alerts.length > 0 && create}
      </PageHeader>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && alerts.length === 0 && (
        <EmptyState icon="alerts" title="No alert yet" action={create}>
          An alert counts the jobs that failed in the last minutes: all, or those of a type, a queue or an error code. It sends a notice
          when they reach its threshold, and another when that is over.
        </EmptyState>
      )}
      {alerts.length > 0 && (
        <Card flush>
          <List alerts={alerts} />
          <LoadMore
            shown={alerts.length}
            one="alert"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
      {creating && (
        <AlertForm
          counts={{ jobType: asked.jobType ?? '', queue: asked.queue ?? '' }}
          onClose={() => {
            setCreating(false);
            router.history.replace(paths.alerts());
          }}
        />
      )}
    </div>
  );
}

function List({ alerts }: { alerts: Alert[] }) {
  const may = useMay();
  const owners = alerts.some((alert) => alert.ownerId !== alerts[0]?.ownerId);
  return (
    <Table caption="Alerts" cards>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          {owners && <th scope="col">Owner</th>}
          <th scope="col">Fires at</th>
          <th scope="col">Now</th>
          <th scope="col">Sends to</th>
          {may('operate') && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {alerts.map((alert) => (
          <tr key={`${alert.ownerId ?? ''}:${alert.name}`}>
            <td className="cell-title">
              <Link href={paths.alert(alert)}>
                <bdi>{alert.name}</bdi>
              </Link>
            </td>
            <td>
              <State alert={alert} />
            </td>
            {owners && (
              <td data-label="Owner" className={alert.ownerId === null ? 'cell-empty' : ''}>
                {alert.ownerId ?? 'all'}
              </td>
            )}
            <td className="cell-whole">
              <div className="alert-rule">
                {threshold(alert)}
                <div className="muted">{subject(alert)}</div>
              </div>
            </td>
            <td data-label="Now">
              {count(alert.failed)} of {count(alert.ended)} failed
            </td>
            <td data-label="Sends to">
              <div className="alert-to">{destination(alert.to) || 'cannot be shown'}</div>
            </td>
            {may('operate') && (
              <td className="cell-whole">
                <PauseButton alert={alert} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function State({ alert: { state, paused, firingSince } }: { alert: Alert }) {
  if (paused) {
    return <Badge tone="warn">paused</Badge>;
  }
  if (state === 'OK') {
    return <Badge tone="good">OK</Badge>;
  }
  return (
    <>
      <Badge tone="danger">firing</Badge> <RelativeTime at={firingSince} />
    </>
  );
}

export function PauseButton({ alert }: { alert: Alert }) {
  const pausing = usePausing();
  return (
    <Button
      small
      icon={alert.paused ? 'clock' : 'pause'}
      busy={pausing.isPending}
      aria-label={`${alert.paused ? 'Resume' : 'Pause'} ${alert.name}`}
      onClick={() => pausing.mutate({ alert, pause: !alert.paused })}
    >
      {alert.paused ? 'Resume' : 'Pause'}
    </Button>
  );
}
