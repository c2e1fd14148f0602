import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useParams, useRouter, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../api/client';
import { useMay } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { count, plural, share } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { ErrorBox } from '../../ui/ErrorBox';
import { Fact, Facts } from '../../ui/Facts';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import '../../ui/form.css';
import { AlertForm } from './AlertForm';
import { PauseButton, State } from './AlertsPage';
import { destination, subject, threshold } from './form';
import { type Alert, named, read, useDelete, useTest } from './queries';

export default function AlertPage() {
  const { name = '' } = useParams({ strict: false }) as { name?: string };
  const { ownerId } = useSearch({ strict: false }) as { ownerId?: string };
  const polling = usePolling(10_000);
  const found = useQuery({
    queryKey: ['alert', name, ownerId],
    queryFn: () => read({ name, ownerId: ownerId ?? null }),
    refetchInterval: polling,
  });
  const alert = found.data?.alert;
  return (
    <div className="stack">
      <PageHeader title={name} lead={<Link href={paths.alerts()}>All alerts</Link>}>
        {found.data && <Actions {...found.data} />}
      </PageHeader>
      {found.isError && <ErrorBox error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {alert && (
        <>
          <About alert={alert} />
          <Notices alert={alert} />
        </>
      )}
    </div>
  );
}

function Actions({ alert, tag }: { alert: Alert; tag: string }) {
  const may = useMay();
  const router = useRouter();
  const test = useTest();
  const remove = useDelete();
  const [editing, setEditing] = useState(false);
  if (!may('operate')) {
    return null;
  }
  return (
    <>
      <Button small icon="play" busy={test.isPending} onClick={() => test.mutate(alert)}>
        Send a test
      </Button>
      <PauseButton alert={alert} />
      <Button small icon="edit" onClick={() => setEditing(true)}>
        Edit
      </Button>
      <Button
        small
        variant="danger"
        icon="trash"
        busy={remove.isPending}
        onClick={() => remove.mutate(alert, { onSuccess: () => router.history.push(paths.alerts()) })}
      >
        Delete
      </Button>
      {editing && <AlertForm alert={alert} tag={tag} onClose={() => setEditing(false)} />}
    </>
  );
}

/** failedJobs is the address of the failures that an alert counts, and of those of the rest of the hour. */
function failedJobs({ jobType, errorCode, ownerId }: Alert): string {
  return paths.dead({
    seen: '1h', ...(jobType !== null && { type: jobType }), ...(errorCode !== null && { errorCode }), ...(ownerId !== null && { ownerId }),
  });
}

function About({ alert }: { alert: Alert }) {
  const { to } = alert;
  return (
    <Card title="What it looks at">
      <Facts>
        <Fact name="State">
          <State alert={alert} />
        </Fact>
        <Fact name="Counts">{subject(alert)}</Fact>
        <Fact name="Fires at">{threshold(alert)}</Fact>
        <Fact name="Now">
          <Link href={failedJobs(alert)}>{plural(alert.failed, 'failure')}</Link> of {plural(alert.ended, 'job')} that ended
          {alert.ended > 0 && ` (${share(alert.failed, alert.ended)})`}
        </Fact>
        <Fact name="Sends to">
          {to === null ? 'sealed by a key that this installation does not have' : `${to.slack === undefined ? '' : 'Slack, '}${destination(to)}`}
        </Fact>
        <Fact name="Announces it again after">{plural(alert.quietMinutes, 'minute')}</Fact>
        <Fact name="Owner">{alert.ownerId ?? 'all owners'}</Fact>
        <Fact name="Changed">
          <RelativeTime at={alert.updatedAt} />
        </Fact>
      </Facts>
    </Card>
  );
}

const TONES = { FIRING: 'danger', RESOLVED: 'good', TEST: 'plain' } as const;

function Notices({ alert }: { alert: Alert }) {
  const polling = usePolling(10_000);
  const where = named(alert).params;
  const list = useInfiniteQuery({
    queryKey: ['notices', alert.name, alert.ownerId],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/alerts/{name}/notices', {
          params: { ...where, query: { ...where.query, limit: 20, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const notices = list.data?.pages.flatMap((page) => page.notices) ?? [];
  return (
    <Card title="Notices" flush={notices.length > 0}>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={4} />}
      {list.isSuccess && notices.length === 0 && <p className="muted">None was sent yet. “Send a test” sends one now.</p>}
      {notices.length > 0 && (
        <>
          <Table caption="Notices, the latest first" cards>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">State</th>
                <th scope="col">Failed</th>
                <th scope="col">Sent by the job</th>
              </tr>
            </thead>
            <tbody>
              {notices.map((notice) => (
                <tr key={notice.noticeId}>
                  <td>
                    <RelativeTime at={notice.at} />
                  </td>
                  <td>
                    <Badge tone={TONES[notice.state]}>{notice.state.toLowerCase()}</Badge>
                  </td>
                  <td>
                    {count(notice.failed)} of {count(notice.ended)} failed
                  </td>
                  <td>
                    <Link href={paths.job(notice.jobId)}>{notice.jobId}</Link>
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
          <LoadMore
            shown={notices.length}
            one="notice"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </>
      )}
    </Card>
  );
}
