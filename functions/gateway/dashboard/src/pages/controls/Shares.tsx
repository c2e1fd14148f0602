import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { useMay, useMe } from '../../api/me';
import { jobTypesQuery, statsQuery } from '../../api/queries';
import { count, plural, share as percent } from '../../format/number';
import { usePolling } from '../../live/live';
import { Badge } from '../../ui/Badge';
import { Bar } from '../../ui/Bar';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Choice } from '../../ui/Choice';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { Skeleton } from '../../ui/Skeleton';
import { Table } from '../../ui/Table';
import './Shares.css';
import type { Control } from './queries';

type Share = Schemas['Share'];

interface Props {
  controls: readonly Control[];
  onEdit: (control: Control) => void;
}

/** Shares shows what waits and runs for each fairness key of a queue, and which part of the starts is due to it. */
export function Shares({ controls, onEdit }: Props) {
  const { installation } = useMe();
  const [queue, setQueue] = useState('default');
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text.trim());
  const polling = usePolling(5000);
  const list = useInfiniteQuery({
    queryKey: ['shares', queue, wanted],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/queues/{queue}/shares', {
          params: { path: { queue }, query: { limit: 20, ...(wanted ? { q: wanted } : {}), ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: polling,
    placeholderData: keepPreviousData,
  });
  const first = list.data?.pages[0];
  const shares = list.data?.pages.flatMap((page) => page.shares) ?? [];
  return (
    <Card
      title="Fair share"
      flush
      aside={
        <div className="row-wrap">
          <input
            type="search"
            className="input shares-search"
            aria-label="Find a fairness key"
            placeholder="Find a key"
            maxLength={255}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <Queues queue={queue} onChange={setQueue} />
        </div>
      }
    >
      {list.isError && <ErrorBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton lines={3} />}
      {first && (
        <p className="shares-note small muted">
          {first.keys === 0
            ? `No job waits or runs in the queue ${queue}.`
            : `${plural(first.keys, 'fairness key')} in the queue ${queue}: ${count(first.waiting)} waiting and ${plural(first.running, 'running job')}${first.complete ? '' : ' at least'}. Keys with waiting jobs take turns, each by its weight.`}
          {first.keys > 0 && shares.length === 0 && ` No key contains “${wanted}”.`}
        </p>
      )}
      {shares.length > 0 && (
        <>
          <Rows shares={shares} controls={controls} withShares={installation} onEdit={onEdit} />
          <LoadMore
            shown={shares.length}
            one="key"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        </>
      )}
    </Card>
  );
}

function Queues({ queue, onChange }: { queue: string; onChange: (queue: string) => void }) {
  const types = useQuery(jobTypesQuery);
  const stats = useQuery({ ...statsQuery, staleTime: 30_000 });
  const served = types.data?.jobTypes.flatMap((type) => type.queues) ?? [];
  const used = stats.data?.queues.map((one) => one.queue) ?? [];
  return <Choice label="Queue" value={queue} options={[...new Set(['default', ...served, ...used])].sort()} onChange={onChange} />;
}

function Rows({ shares, controls, withShares, onEdit }: Props & { shares: Share[]; withShares: boolean }) {
  const may = useMay();
  const edits = withShares && may('operate');
  return (
    <Table caption="Fairness keys" cards>
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col" className="number">
            Weight
          </th>
          <th scope="col" className="number">
            Waiting
          </th>
          <th scope="col" className="number">
            Running
          </th>
          {withShares && <th scope="col">Share of the next starts</th>}
          {withShares && <th scope="col">Share of what runs</th>}
          {edits && <th scope="col">Actions</th>}
        </tr>
      </thead>
      <tbody>
        {shares.map((one) => (
          <tr key={one.fairnessKey}>
            <td className="shares-key cell-title">
              {one.fairnessKey === '' ? <span className="muted">no key and no owner</span> : one.fairnessKey} <Held share={one} />
            </td>
            <td data-label="Weight" className="number">{one.weight}</td>
            <td data-label="Waiting" className="number">{count(one.waiting)}</td>
            <td data-label="Running" className="number">{count(one.running)}</td>
            {withShares && <Part name="Next starts" label={`Share of the next starts of ${one.fairnessKey}`} part={one.dueShare} />}
            {withShares && <Part name="Runs" label={`Share of what runs of ${one.fairnessKey}`} part={one.runningShare} />}
            {edits && (
              <td>
                {one.fairnessKey !== '' && (
                  <Button
                    small
                    icon="edit"
                    aria-label={`Set the weight of ${one.fairnessKey}`}
                    onClick={() => onEdit(controlOf(one.fairnessKey, controls))}
                  >
                    Weight
                  </Button>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Held({ share: { paused, maxRunning, startsPerSecond } }: { share: Share }) {
  if (paused) {
    return <Badge tone="warn">paused</Badge>;
  }
  const limits = [maxRunning === null ? [] : `${count(maxRunning)} at once`, startsPerSecond === null ? [] : `${startsPerSecond}/s`].flat();
  return limits.length === 0 ? null : <Badge>at most {limits.join(', ')}</Badge>;
}

function Part({ name, label, part }: { name: string; label: string; part: number | null }) {
  return (
    <td data-label={name} className="cell-whole">
      <div className="row shares-part">
        <Bar label={label} value={part ?? 0} max={1} />
        <span className="tabular">{percent(part ?? 0, 1)}</span>
      </div>
    </td>
  );
}

/** controlOf returns the control of a key, which has none in most cases. */
function controlOf(name: string, controls: readonly Control[]): Control {
  return (
    controls.find((control) => control.kind === 'fairnessKey' && control.name === name) ?? {
      kind: 'fairnessKey', name, paused: false, maxRunning: null, startsPerSecond: null, weight: 1, version: 0, applied: true,
      updatedAt: null, updatedBy: null,
    }
  );
}
