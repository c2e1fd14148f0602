import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { useMe } from '../../api/me';
import { PageHeader } from '../../app/PageHeader';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { useNow } from '../../ui/now';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { Confirmed } from './Confirmed';
import { CreateKey, NewKey, RevokeKey, RotateKey } from './dialogs';
import { type StoredKey, stateOf } from './state';

type Open = { dialog: 'create' } | { dialog: 'rotate' | 'revoke'; key: StoredKey } | { dialog: 'made'; key: Schemas['NewKey'] };

export default function KeysPage() {
  const [open, setOpen] = useState<Open>();
  const polling = usePolling(10_000);
  const list = useInfiniteQuery({
    queryKey: ['keys'],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/keys', { params: { query: { limit: 100, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const keys = list.data?.pages.flatMap((page) => page.keys) ?? [];
  const close = () => setOpen(undefined);
  const made = (key: Schemas['NewKey']) => setOpen({ dialog: 'made', key });
  const create = (
    <Button icon="new" variant="primary" onClick={() => setOpen({ dialog: 'create' })}>
      New key
    </Button>
  );
  return (
    <div className="stack">
      <PageHeader title="API keys" lead="Who may call the API, and what they may do.">
        {create}
      </PageHeader>
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={6} />}
      {list.isSuccess && keys.length === 0 && (
        <EmptyState icon="keys" title="No key yet">
          Give each program a key of its own, with no more roles than it needs: submit submits jobs and reads nothing, read sees, operate
          does both and cancels, retries and pauses, admin also makes keys. A lost key is revoked here; only its hash is stored.
        </EmptyState>
      )}
      {keys.length > 0 && (
        <Card flush>
          <List keys={keys} onOpen={setOpen} />
          <LoadMore
            shown={keys.length}
            one="key"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
      {open?.dialog === 'create' && (
        <Confirmed onClose={close}>
          <CreateKey onMade={made} onClose={close} />
        </Confirmed>
      )}
      {open?.dialog === 'rotate' && (
        <Confirmed onClose={close}>
          <RotateKey stored={open.key} onMade={made} onClose={close} />
        </Confirmed>
      )}
      {open?.dialog === 'revoke' && <RevokeKey stored={open.key} onClose={close} />}
      {open?.dialog === 'made' && <NewKey made={open.key} onClose={close} />}
    </div>
  );
}

function List({ keys, onOpen }: { keys: StoredKey[]; onOpen: (open: Open) => void }) {
  const { actor, installation } = useMe();
  const now = useNow();
  return (
    <Table caption="API keys" cards>
      <thead>
        <tr>
          <th scope="col">Name</th>
          {installation && <th scope="col">Owner</th>}
          <th scope="col">Roles</th>
          <th scope="col">State</th>
          <th scope="col">Last used</th>
          <th scope="col">Made</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.keyId}>
            <td className="cell-title">
              <bdi>{key.name}</bdi> {actor === `key:${key.keyId}` && <Badge>yours</Badge>}
              <div className="small muted mono">{key.keyId}</div>
            </td>
            {installation && <td data-label="Owner">{key.ownerId ?? 'the installation'}</td>}
            <td data-label="Roles">{key.roles.join(', ')}</td>
            <td>
              <State stored={key} now={now} />
            </td>
            <td data-label="Used">{key.lastUsedAt === null ? <span className="muted">never</span> : <RelativeTime at={key.lastUsedAt} />}</td>
            <td data-label="Made">
              <RelativeTime at={key.createdAt} /> <span className="muted">by {key.createdBy}</span>
            </td>
            <td className="cell-whole">
              {stateOf(key, now) === 'live' && (
                <div className="row-wrap">
                  <Button small icon="retry" aria-label={`Rotate ${key.name}`} onClick={() => onOpen({ dialog: 'rotate', key })}>
                    Rotate
                  </Button>
                  <Button
                    small
                    variant="danger"
                    icon="trash"
                    aria-label={`Revoke ${key.name}`}
                    onClick={() => onOpen({ dialog: 'revoke', key })}
                  >
                    Revoke
                  </Button>
                </div>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function State({ stored, now }: { stored: StoredKey; now: Date }) {
  switch (stateOf(stored, now)) {
    case 'revoked':
      return (
        <>
          <Badge tone="danger">revoked</Badge> <RelativeTime at={stored.revokedAt} />
        </>
      );
    case 'expired':
      return (
        <>
          <Badge tone="warn">expired</Badge> <RelativeTime at={stored.expiresAt} />
        </>
      );
    case 'live':
      return (
        <>
          <Badge tone="good">live</Badge>{' '}
          {stored.expiresAt !== null && (
            <span className="muted">
              expires <RelativeTime at={stored.expiresAt} />
            </span>
          )}
        </>
      );
  }
}
