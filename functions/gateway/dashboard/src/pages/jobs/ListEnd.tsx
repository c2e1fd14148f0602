import { useEffect, useState } from 'react';
import { plural } from '../../format/number';
import { momentToMinute } from '../../format/time';
import { useTimes } from '../../format/times';
import { Button } from '../../ui/Button';
import { LoadMore } from '../../ui/LoadMore';
import { useNow } from '../../ui/now';
import type { useJobList } from './useJobList';

const PATIENCE_MS = 10_000;

interface Props {
  list: ReturnType<typeof useJobList>['list'];
  shown: number;
}

/** ListEnd loads the next page on request. A search that has found nothing yet goes on by itself for a while, and shows how far it is. */
export function ListEnd({ list, shown }: Props) {
  useTimes();
  const now = useNow();
  const [goesOnUntil, goOnUntil] = useState(() => Date.now() + PATIENCE_MS);
  const { data, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const searchedTo = data?.pages.at(-1)?.searchedTo ?? null;
  const goesOn = shown === 0 && hasNextPage && !isFetchNextPageError && now.getTime() < goesOnUntil;

  useEffect(() => {
    if (goesOn && !isFetchingNextPage) {
      void fetchNextPage();
    }
  }, [goesOn, isFetchingNextPage, fetchNextPage]);

  const more = () => {
    goOnUntil(Date.now() + PATIENCE_MS);
    void fetchNextPage();
  };
  if (searchedTo === null || !hasNextPage) {
    return <LoadMore shown={shown} one="job" hasMore={hasNextPage} loading={isFetchingNextPage} onMore={more} />;
  }
  return (
    <div className="load-more">
      <span className="muted small" aria-live="polite">
        {shown === 0 ? 'No match yet' : plural(shown, 'job')}, searched back to {momentToMinute(searchedTo, now)}
      </span>
      <Button small busy={isFetchingNextPage} onClick={more}>
        {isFetchingNextPage ? 'Searching' : 'Keep searching'}
      </Button>
    </div>
  );
}
