import { useInfiniteQuery } from '@tanstack/react-query';
import { useRouter, useSearch } from '@tanstack/react-router';
import { useId, useState, type FormEvent } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { stringify } from '../../api/json';
import { useMe } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { fromLocalInput, toLocalInput } from '../../format/time';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Code } from '../../ui/Code';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { Field } from '../../ui/Field';
import { Fold } from '../../ui/Fold';
import '../../ui/form.css';
import { LoadMore } from '../../ui/LoadMore';
import { RelativeTime } from '../../ui/RelativeTime';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import { filtersOf, type Filters, withTime } from './filters';

type Entry = Schemas['AuditEntry'];

export default function AuditPage() {
  const filters = filtersOf(useSearch({ strict: false }));
  const polling = usePolling(10_000);
  const list = useInfiniteQuery({
    queryKey: ['audit', filters],
    queryFn: ({ pageParam }) =>
      answer(api.GET('/api/audit', { params: { query: { ...filters, limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
  });
  const entries = list.data?.pages.flatMap((page) => page.entries) ?? [];
  const filtered = Object.keys(filters).length > 0;
  return (
    <div className="stack">
      <PageHeader title="Audit" lead="Who did what, the latest first." />
      <FilterForm key={JSON.stringify(filters)} filters={filters} entries={entries} />
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={8} />}
      {list.isSuccess && entries.length === 0 && (
        <EmptyState icon="audit" title={filtered ? 'No entry matches' : 'No entry yet'}>
          {filtered
            ? 'Entries are compared exactly: an actor is key:<id> or oidc:<subject>, an action is a name such as job.cancel.'
            : 'While authentication is on, each request that changes something leaves an entry, in the transaction of the change. No key can change or delete one.'}
        </EmptyState>
      )}
      {entries.length > 0 && (
        <Card flush>
          <List entries={entries} />
          <LoadMore
            shown={entries.length}
            one="entry"
            many="entries"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </Card>
      )}
    </div>
  );
}

function FilterForm({ filters, entries }: { filters: Filters; entries: Entry[] }) {
  const { installation } = useMe();
  const router = useRouter();
  const id = useId();
  const [typed, setTyped] = useState(filters);
  const show = (next: Filters) => router.history.push(paths.audit(next as Record<string, string>));
  const fields: [keyof Filters, string][] = [['actor', 'Actor'], ['action', 'Action'], ['jobId', 'Job id']];
  if (installation) {
    fields.push(['ownerId', 'Owner']);
  }
  const offered = { actor: choices(entries, ({ actor }) => actor), action: choices(entries, ({ action }) => action) };
  return (
    <form
      className="form-row"
      role="search"
      aria-label="Filter entries"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        show(filtersOf(typed));
      }}
    >
      {fields.map(([name, label]) => (
        <Field key={name} label={label}>
          {(props) => (
            <input
              {...props}
              className="input"
              list={`${id}-${name}`}
              value={typed[name] ?? ''}
              onChange={(e) => setTyped({ ...typed, [name]: e.target.value })}
            />
          )}
        </Field>
      ))}
      {(['since', 'until'] as const).map((name) => (
        <Field key={name} label={name === 'since' ? 'From' : 'Until'}>
          {(props) => (
            <input
              {...props}
              type="datetime-local"
              className="input"
              value={localOf(typed[name])}
              onChange={(e) => setTyped(withTime(typed, name, fromLocalInput(e.target.value)))}
            />
          )}
        </Field>
      ))}
      {Object.entries(offered).map(([name, values]) => (
        <datalist key={name} id={`${id}-${name}`}>
          {values.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      ))}
      <div className="form-end">
        <Button type="submit" icon="filter">
          Filter
        </Button>
        {Object.keys(filters).length > 0 && <Button onClick={() => show({})}>Show all</Button>}
      </div>
    </form>
  );
}

/** localOf returns the value of an input for an instant; empty if the address has none, or a wrong one. */
function localOf(at: string | undefined): string {
  const date = new Date(at ?? '');
  return Number.isNaN(date.getTime()) ? '' : toLocalInput(date);
}

/** choices returns the different values that the shown entries have. */
function choices(entries: readonly Entry[], value: (entry: Entry) => string): string[] {
  return [...new Set(entries.map(value))].sort();
}

function List({ entries }: { entries: Entry[] }) {
  return (
    <Table caption="Audit log" cards>
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">Did what</th>
          <th scope="col">To what</th>
          <th scope="col">From</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <td>
              <RelativeTime at={entry.at} />
            </td>
            <td>
              <Link href={paths.audit({ actor: entry.actor })}>{entry.actor}</Link>
              {entry.ownerId !== null && <div className="small muted">owner {entry.ownerId}</div>}
            </td>
            <td className="tall-line">
              <Link href={paths.audit({ action: entry.action })}>{entry.action}</Link>
            </td>
            <td className="cell-whole">
              <What entry={entry} />
            </td>
            <td>
              {entry.remoteAddr}
              {entry.userAgent !== null && <div className="small muted clip">{entry.userAgent}</div>}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

const FEW = 3; // jobs of an entry that are shown at first

/** addressOf returns the page of an entry's resource, if there is one. */
function addressOf({ resource, ownerId }: Entry): string | undefined {
  const [, kind, name = ''] = /^(\w+)\/(.+)$/.exec(resource ?? '') ?? [];
  switch (kind) {
    case 'operation':
      return paths.operation(name);
    case 'batch':
      return paths.batch(name); // which leads on to the page of a flow
    case 'schedule':
      return paths.schedule({ name, ownerId });
    default:
      return undefined;
  }
}

function What({ entry }: { entry: Entry }) {
  const { resource, jobIds, details } = entry;
  const address = addressOf(entry);

  const links = (ids: string[]) =>
    ids.map((id) => (
      <div key={id} className="tall-line">
        <Link href={paths.job(id)} className="mono">
          {id}
        </Link>
      </div>
    ));
  return (
    <>
      {resource !== null && <div className="tall-line">{address ? <Link href={address}>{resource}</Link> : resource}</div>}
      {links(jobIds.slice(0, FEW))}
      {jobIds.length > FEW && <Fold title={`${jobIds.length - FEW} more`}>{() => links(jobIds.slice(FEW))}</Fold>}
      {details !== null && Object.keys(details).length > 0 && (
        <Fold title="Details">{() => <Code label="the details" text={stringify(details, 2)} />}</Fold>
      )}
    </>
  );
}
