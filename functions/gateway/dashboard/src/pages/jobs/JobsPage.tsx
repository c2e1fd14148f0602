import { getCoreRowModel, useReactTable, type RowSelectionState } from '@tanstack/react-table';
import { useEffect, useState } from 'react';
import { seesOwnersJobs, useMay, useMe } from '../../api/me';
import { Link } from '../../app/Link';
import { PageHeader } from '../../app/PageHeader';
import { paths } from '../../app/paths';
import { useSearch } from '../../app/useSearch';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { LoadMore } from '../../ui/LoadMore';
import { Skeleton } from '../../ui/Skeleton';
import { isTexts, useStored } from '../../ui/stored';
import { BulkBar } from './BulkBar';
import { columns, NARROW, WIDE } from './columns';
import { ColumnsMenu } from './ColumnsMenu';
import { FilterBar } from './FilterBar';
import { isEmpty, readFilters, writeFilters } from './filters';
import { JobTable } from './JobTable';
import { useJobList } from './useJobList';
import { ViewsMenu } from './ViewsMenu';
import './Jobs.css';

/** JobsPage finds a job, and jobs like it. */
export default function JobsPage() {
  const may = useMay();
  const [filters, setFilters] = useSearch(readFilters, writeFilters);
  const { list, rows, news, showNews } = useJobList(filters);
  const [shown, setShown] = useStored('jobweaver.columns', matchMedia('(max-width: 52rem)').matches ? NARROW : WIDE, isTexts);
  const [selection, setSelection] = useState<RowSelectionState>({});
  const operate = may('operate');

  useEffect(() => setSelection({}), [filters]);

  const table = useReactTable({
    data: rows,
    columns,
    getRowId: (job) => job.jobId,
    getCoreRowModel: getCoreRowModel(),
    state: {
      rowSelection: selection,
      columnVisibility: Object.fromEntries(columns.map(({ id }) => [id, id !== undefined && shown.includes(id)])),
    },
    enableRowSelection: operate,
    onRowSelectionChange: setSelection,
  });
  const selected = Object.keys(selection);

  return (
    <>
      <PageHeader title="Jobs">
        <ViewsMenu filters={filters} onChoose={setFilters} />
        <ColumnsMenu table={table} shown={shown} onChange={setShown} />
      </PageHeader>
      <FilterBar filters={filters} onChange={setFilters} />
      {operate && rows.length > 0 && (
        <BulkBar filters={filters} selected={selected} all={selected.length === rows.length} onDone={() => setSelection({})} />
      )}
      <Card flush>
        {news.fresh.length > 0 && (
          <Button className="news" variant="quiet" onClick={showNews}>
            {news.gap ? `${news.fresh.length} or more new jobs` : `${plural(news.fresh.length, 'new job')}`}: show
          </Button>
        )}
        {list.isError && <ErrorBox error={list.error} title="The jobs cannot be listed" onRetry={() => void list.refetch()} />}
        {list.isPending && <Skeleton lines={10} />}
        {list.isSuccess && rows.length === 0 && (
          <NoJobs filtered={!isEmpty(filters)} more={list.hasNextPage} onClear={() => setFilters(readFilters({}))} />
        )}
        {rows.length > 0 && <JobTable table={table} left={news.left} selectable={operate} />}
        {(rows.length > 0 || list.hasNextPage) && (
          <LoadMore
            shown={rows.length}
            one="job"
            hasMore={list.hasNextPage}
            loading={list.isFetchingNextPage}
            onMore={() => void list.fetchNextPage()}
          />
        )}
      </Card>
    </>
  );
}

/** NoJobs explains why no job is listed. more: a search has stopped before the oldest job. */
function NoJobs({ filtered, more, onClear }: { filtered: boolean; more: boolean; onClear: () => void }) {
  const me = useMe();
  if (!filtered && !seesOwnersJobs(me)) {
    return (
      <EmptyState icon="jobs" title={more ? 'The newest jobs all have owners' : 'The installation itself has no jobs'}>
        Your key belongs to the installation, and this list has jobs of no owner only. To see those of an owner, act for it: the menu at the
        top right has a field for that. The overview counts the jobs of all owners.
      </EmptyState>
    );
  }
  if (more) {
    return (
      <EmptyState icon="filter" title="No match so far">
        Few jobs match these filters: a search looks at a limited number of jobs, the newest first. Load more to search older ones.
      </EmptyState>
    );
  }
  if (!filtered) {
    return (
      <EmptyState icon="jobs" title="No job has been submitted yet" action={<Link href={paths.newJob()}>Submit one with a form</Link>}>
        A job arrives as a POST to <code>/api/jobs</code>, as a CloudEvent at <code>/events</code>, or from a schedule.
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="filter" title="No job matches" action={<Button onClick={onClear}>Remove all filters</Button>}>
      All filters must hold at once. Jobs that ended long ago may have been deleted; new ones are announced here as they come.
    </EmptyState>
  );
}
