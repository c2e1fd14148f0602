import { flexRender, type Table } from '@tanstack/react-table';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import { TableScroll } from '../../ui/Table';
import type { Job } from './rows';

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
  table: Table<Job>;
  left: ReadonlySet<string>; // rows that no longer match the filter
  selectable: boolean;
}

/** JobTable renders only the rows near the window, however many are loaded. */
export function JobTable({ table, left, selectable }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [offset, setOffset] = useState(0);
  const { rows } = table.getRowModel();
  const isPhone = usePhone();

  useLayoutEffect(() => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    setOffset(top + window.scrollY);
  }, [rows.length]);

  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (isPhone ? CARD_HEIGHT : ROW_HEIGHT),
    overscan: 12,
    scrollMargin: offset,
    getItemKey: (i) => rows[i]?.id ?? i,
  });
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, isPhone]);
  const items = virtualizer.getVirtualItems();
  const before = (items[0]?.start ?? offset) - offset;
  const after = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  const span = table.getVisibleLeafColumns().length + 1;

  return (
    <TableScroll label="Jobs">
      <table className="table table-cards job-table" aria-rowcount={rows.length + 1}>
        <caption className="visually-hidden">Jobs, the newest first</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1}>
              {selectable && (
                <th scope="col" className="check-cell">
                  <input
                    type="checkbox"
                    aria-label="Select all jobs that are shown"
                    checked={table.getIsAllRowsSelected()}
                    ref={(box) => {
                      if (box) {
                        box.indeterminate = table.getIsSomeRowsSelected();
                      }
                    }}
                    onChange={table.getToggleAllRowsSelectedHandler()}
                  />
                </th>
              )}
              {group.headers.map((header) => (
                <th key={header.id} scope="col">
                  {flexRender(header.column.columnDef.header, header.getContext())}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody ref={body}>
          <Gap height={before} span={span} />
          {items.map((item) => {
            const row = rows[item.index];
            if (row === undefined) {
              return null;
            }
            const gone = left.has(row.id);
            return (
              <tr
                key={row.id}
                ref={isPhone ? virtualizer.measureElement : null}
                data-index={item.index}
                aria-rowindex={item.index + 2}
                className={gone ? 'row-left' : undefined}
                title={gone ? 'It does not match the filters any more' : undefined}
              >
                {selectable && (
                  <td className="check-cell">
                    <input
                      type="checkbox"
                      aria-label={`Select the job ${row.id}`}
                      checked={row.getIsSelected()}
                      onChange={row.getToggleSelectedHandler()}
                    />
                  </td>
                )}
                {row.getVisibleCells().map((cell) => (
                  <td key={cell.id} className={`cell-${cell.column.id}`}>{flexRender(cell.column.columnDef.cell, cell.getContext())}</td>
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
