import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { answer, api, type Schemas } from '../../api/client';
import { usePolling } from '../../live/live';
import { useStream, useThrottled } from '../../live/useStream';
import { toQuery, type Filters } from './filters';
import { compare, update, type Job, type News } from './rows';

const PAGE = 50;
const HEAD_MS = 3000;
const CONNECTED_HEAD_MS = 30_000; // the stream sends the changes in between
const LONG_MS = 500; // of a search
const CLOCKS_MS = 60_000; // how far the clocks of the browser and of the database may differ
const NOTHING: ReadonlyMap<string, Job> = new Map();

type Page = Schemas['JobPage'] & { askedAt: number; ms: number }; // when it was asked for, and how long the search took
type Loaded = InfiniteData<Page, string | null>;

async function ask(filters: Filters, cursor: string | null, signal: AbortSignal, since?: string): Promise<Page> {
  const asked = toQuery(filters, new Date());
  const later = since !== undefined && (asked.since ?? '') < since;
  const query = { ...asked, ...(later && { since }), limit: PAGE, ...(cursor !== null && { cursor }) };
  const askedAt = Date.now();
  const page = await answer(api.GET('/api/jobs', { params: { query }, signal }));
  return { ...page, askedAt, ms: Date.now() - askedAt };
}

/**
 * useJobList returns a list that does not jump under the cursor: the loaded rows keep their places and only change their state.
 * The newest page is polled beside it; jobs that it has above the rows are announced as news, and shown on request.
 */
export function useJobList(filters: Filters) {
  const client = useQueryClient();
  const listKey = ['jobs', 'list', filters];
  const list = useInfiniteQuery({
    queryKey: listKey,
    queryFn: ({ pageParam, signal }) => ask(filters, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    staleTime: Infinity, // reloading all pages would move rows
    gcTime: 0,
  });
  const loaded = useMemo(() => list.data?.pages.flatMap((page) => page.jobs) ?? [], [list.data]);
  const shown = useMemo(() => new Set(loaded.map((job) => job.jobId)), [loaded]);
  const [streamed, setStreamed] = useState(NOTHING); // changes of loaded rows, from the stream
  const askHead = useThrottled(1000, () => void client.invalidateQueries({ queryKey: ['jobs', 'head'] }));
  const followed = useMemo(() => toQuery(filters, new Date()), [filters]);
  const connected = useStream(followed, ({ name, data }) => {
    const job = data as Job;
    if (name === 'job' && shown.has(job.jobId)) {
      setStreamed((before) => new Map(before).set(job.jobId, job));
    }
    if (name === 'job' || name === 'reload') {
      askHead();
    }
  });
  useEffect(() => setStreamed(NOTHING), [filters]);
  const first = list.data?.pages[0];
  // A search that took long is not repeated: only what was accepted since is looked for.
  const since = first !== undefined && first.ms > LONG_MS ? new Date(first.askedAt - CLOCKS_MS).toISOString() : undefined;
  const head = useQuery({
    queryKey: ['jobs', 'head', filters, since],
    queryFn: ({ signal }) => ask(filters, null, signal, since),
    refetchInterval: usePolling(connected ? CONNECTED_HEAD_MS : HEAD_MS),
    placeholderData: keepPreviousData,
    enabled: list.isSuccess,
    gcTime: 0,
  });
  const current = head.isPlaceholderData ? undefined : head.data;
  const rows = useMemo(() => {
    const known = new Map(current?.jobs.map((job) => [job.jobId, job]));
    return update(update(loaded, streamed), known);
  }, [loaded, streamed, current]);
  const news = useMemo(
    (): News => (current ? compare(loaded, current.jobs, current.nextCursor === null, since !== undefined) : { fresh: [], gap: false, left: new Set() }),
    [loaded, current, since],
  );

  const showNews = () => {
    if (news.gap) {
      void client.resetQueries({ queryKey: listKey });
      return;
    }
    client.setQueryData<Loaded>(listKey, (data) => prepend(data, news.fresh));
  };
  return { list, rows, news, showNews };
}

/** prepend adds jobs to the first page; the cursors of the pages stay valid, because each names the last row of its page. */
function prepend(data: Loaded | undefined, fresh: Job[]): Loaded | undefined {
  const [first, ...rest] = data?.pages ?? [];
  if (data === undefined || first === undefined) {
    return data;
  }
  return { ...data, pages: [{ ...first, jobs: [...fresh, ...first.jobs] }, ...rest] };
}
