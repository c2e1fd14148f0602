import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api } from '../../api/client';
import { asApiError } from '../../api/error';
import { inZone, withSeconds } from '../../format/zone';
import { fromLocalInput } from '../../format/time';
import type { Draft } from './form';

/** Preview shows when a schedule would fire, also while its form is filled in. */
export function Preview({ form }: { form: Draft }) {
  const { cron, timeZone, startAt, endAt } = useSettled(form);
  const asked = {
    cron: cron.trim(),
    ...(timeZone.trim() !== '' && { timeZone: timeZone.trim() }),
    ...instant('startAt', startAt),
    ...instant('endAt', endAt),
  };
  const times = useQuery({
    queryKey: ['schedule-times', asked],
    queryFn: ({ signal }) => answer(api.GET('/api/schedule-times', { params: { query: asked }, signal })),
    enabled: asked.cron !== '',
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
  if (asked.cron === '') {
    return null;
  }
  if (times.isError) {
    const [wrong] = asApiError(times.error).details;
    return <p className="small muted">No next times: {wrong ? `${wrong.path} ${wrong.message}` : asApiError(times.error).message}</p>;
  }
  const upcoming = times.data?.upcoming ?? [];
  const seconds = withSeconds(upcoming);
  return (
    <div className="small" role="status" aria-label="Next times">
      {upcoming.length === 0 && <p className="muted">{times.isPending ? 'Next times …' : 'It never fires: its end is before its first time.'}</p>}
      <ol className="stack-small">
        {upcoming.map((at) => (
          <li key={at}>
            <time dateTime={at}>{inZone(at, asked.timeZone ?? 'UTC', seconds)}</time>
          </li>
        ))}
      </ol>
      {form.paused && upcoming.length > 0 && <p className="muted">None of them while it is paused.</p>}
    </div>
  );
}

function instant(name: 'startAt' | 'endAt', text: string): Record<string, string> {
  const at = fromLocalInput(text);
  return at === null ? {} : { [name]: at };
}

/** useSettled returns a value once it has not changed for a moment: half an expression needs no times. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 300);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
