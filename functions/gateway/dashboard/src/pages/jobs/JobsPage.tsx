import { useEffect, useMemo, useState } from 'react';
import { useMay, useMe } from '../../api/me';
import { useKey } from '../../api/session';
import { PageHeader } from '../../app/PageHeader';
import { useSearch } from '../../app/useSearch';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import { isTexts, useStored } from '../../ui/stored';
import { BulkBar } from './BulkBar';
import { columns, NARROW, WIDE } from './columns';
import { ColumnsMenu } from './ColumnsMenu';
import { FilterBar } from './FilterBar';
import { readFilters, writeFilters } from './filters';
import { JobTable } from './JobTable';
import { ListEnd } from './ListEnd';
import { NoJobs } from './NoJobs';
import { useJobList } from './useJobList';
import { ViewsMenu } from './ViewsMenu';
import './Jobs.css';

const NONE: ReadonlySet<string> = new Set();

/** JobsPage finds a job, and jobs like it. */
export default function JobsPage() {
  const may = useMay();
  const [filters, setFilters] = useSearch(readFilters, writeFilters);
  const { list, rows, news, showNews } = useJobList(filters);
  const [shown, setShown] = useStored('jobweaver.columns', useColumns(), isTexts);
  const [selection, setSelection] = useState<ReadonlySet<string>>(NONE);
  const operate = may('operate');

  useEffect(() => setSelection(NONE), [filters]);

  const selected = [...selection];
  const tags = useMemo(() => [...new Set(rows.flatMap((job) => job.tags))], [rows]);

  return (
    <>
      <PageHeader title="Jobs">
        <ViewsMenu filters={filters} onChoose={setFilters} />
        <ColumnsMenu shown={shown} onChange={setShown} />
      </PageHeader>
      <FilterBar filters={filters} tags={tags} onChange={setFilters} />
      {operate && rows.length > 0 && (
        <BulkBar
          filters={filters}
          selected={selected}
          all={selected.length === rows.length}
          onAll={() => setSelection(new Set(rows.map(({ jobId }) => jobId)))}
          onDone={() => setSelection(NONE)}
        />
      )}
      <Card flush>
        {news.fresh.length > 0 && (
          <Button className="news" variant="quiet" onClick={showNews}>
            {news.gap ? `${news.fresh.length} or more new jobs` : `${plural(news.fresh.length, 'new job')}`}: show
          </Button>
        )}
        {list.isError && <ErrorBox error={list.error} title="The jobs cannot be listed" onRetry={() => void list.refetch()} />}
        {list.isPending && <Skeleton lines={10} />}
        {list.isSuccess && rows.length === 0 && !list.hasNextPage && <NoJobs filters={filters} onClear={() => setFilters(readFilters({}))} />}
        {rows.length > 0 && (
          <JobTable
            jobs={rows}
            columns={columns.filter(({ id }) => shown.includes(id))}
            left={news.left}
            selected={selection}
            onSelect={operate ? setSelection : undefined}
          />
        )}
        {(rows.length > 0 || list.hasNextPage) && <ListEnd list={list} shown={rows.length} />}
      </Card>
    </>
  );
}

/** useColumns returns the columns that are shown until the user chooses others. An admin of the installation sees whose a job is. */
function useColumns(): string[] {
  const { installation } = useMe();
  const withOwners = useKey() !== null && installation;
  if (matchMedia('(max-width: 52rem)').matches) {
    return NARROW;
  }
  return withOwners ? [...WIDE, 'ownerId'] : WIDE;
}
