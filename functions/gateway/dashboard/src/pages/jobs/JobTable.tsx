import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import { TableScroll } from '../../ui/Table';
import type { Column } from './columns';
import type { Job } from './rows';
import { useRowKeys } from './useRowKeys';

const ROW_HEIGHT = 41;
const CARD_HEIGHT = 92; // of most rows on a phone

const phone = matchMedia('(max-width: 37.5rem)');

function usePhone(): boolean {
  return useSyncExternalStore(
    (changed) => {
      phone.addEventListener('change', changed);
      return () => phone.removeEventListener('change', changed);
    },
    () => phone.matches,
  );
}

interface Props {
  jobs: readonly Job[];
  columns: readonly Column[];
  left: ReadonlySet<string>; // rows that no longer match the filter
  selected: ReadonlySet<string>;
  onSelect?: ((selected: ReadonlySet<string>) => void) | undefined; // absent: no row can be selected
}

/** JobTable renders only the rows near the window, however many are loaded. */
export function JobTable({ jobs, columns, left, selected, onSelect }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [offset, setOffset] = useState(0);
  const isPhone = usePhone();
  useRowKeys(body, onSelect !== undefined);

  useLayoutEffect(() => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    setOffset(top + window.scrollY);
  }, [jobs.length]);

  const virtualizer = useWindowVirtualizer({
    count: jobs.length,
    estimateSize: () => (isPhone ? CARD_HEIGHT : ROW_HEIGHT),
    overscan: 12,
    scrollMargin: offset,
    getItemKey: (i) => jobs[i]?.jobId ?? i,
  });
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, isPhone]);
  const items = virtualizer.getVirtualItems();
  const before = (items[0]?.start ?? offset) - offset;
  const after = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  const span = columns.length + 1;
  const all = jobs.length > 0 && jobs.every(({ jobId }) => selected.has(jobId));
  const toggle = (jobId: string) => {
    const next = new Set(selected);
    if (!next.delete(jobId)) {
      next.add(jobId);
    }
    onSelect?.(next);
  };

  return (
    <TableScroll label="Jobs">
      <table className="table table-cards job-table" aria-rowcount={jobs.length + 1}>
        <caption className="visually-hidden">Jobs, the newest first</caption>
        <thead>
          <tr aria-rowindex={1}>
            {onSelect && (
              <th scope="col" className="check-cell">
                <input
                  type="checkbox"
                  aria-label="Select all jobs that are shown"
                  checked={all}
                  ref={(box) => {
                    if (box) {
                      box.indeterminate = selected.size > 0 && !all;
                    }
                  }}
                  onChange={() => onSelect(new Set(all ? [] : jobs.map(({ jobId }) => jobId)))}
                />
              </th>
            )}
            {columns.map(({ id, header }) => (
              <th key={id} scope="col">
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Gap height={before} span={span} />
          {items.map((item) => {
            const job = jobs[item.index];
            if (job === undefined) {
              return null;
            }
            const { jobId } = job;
            const gone = left.has(jobId);
            return (
              <tr
                key={jobId}
                data-id={jobId}
                ref={isPhone ? virtualizer.measureElement : null}
                data-index={item.index}
                aria-rowindex={item.index + 2}
                className={gone ? 'row-left' : undefined}
                title={gone ? 'It does not match the filters any more' : undefined}
              >
                {onSelect && (
                  <td className="check-cell">
                    <input type="checkbox" aria-label={`Select the job ${jobId}`} checked={selected.has(jobId)} onChange={() => toggle(jobId)} />
                  </td>
                )}
                {columns.map(({ id, cell }) => (
                  <td key={id} className={`cell-${id}`}>{cell(job)}</td>
                ))}
              </tr>
            );
          })}
          <Gap height={after} span={span} />
        </tbody>
      </table>
    </TableScroll>
  );
}

/** Gap fills the place of rows that are not rendered. */
function Gap({ height, span }: { height: number; span: number }) {
  if (height <= 0) {
    return null;
  }
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}
