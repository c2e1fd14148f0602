import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { useMay, useMe } from '../../api/me';
import { statsQuery } from '../../api/queries';
import { PageHeader } from '../../app/PageHeader';
import { useSearch } from '../../app/useSearch';
import { count, plural } from '../../format/number';
import { usePolling } from '../../live/live';
import { Button } from '../../ui/Button';
import { Card } from '../../ui/Card';
import { Choice } from '../../ui/Choice';
import { EmptyState } from '../../ui/EmptyState';
import { ErrorBox } from '../../ui/ErrorBox';
import { Skeleton } from '../../ui/Skeleton';
import '../jobs/Jobs.css';
import { NO_CODE, readDeadFilters, SEEN, writeDeadFilters, type DeadFilters } from './filters';
import { GroupsDialog, type GroupCommand } from './GroupsDialog';
import { GroupTable } from './GroupTable';
import { keyOf, type Group } from './groups';
import { deadGroupsQuery } from './queries';
import './Dead.css';

const NONE: ReadonlySet<string> = new Set();

/** DeadPage shows which jobs failed for good and for which reasons, and lets the user redrive or delete them. */
export default function DeadPage() {
  const mayOperate = useMay()('operate');
  const [filters, setFilters] = useSearch(readDeadFilters, writeDeadFilters);
  const [selected, setSelected] = useState(NONE);
  const [asked, setAsked] = useState<{ command: GroupCommand; groups: Group[] }>();
  const found = useQuery({ ...deadGroupsQuery(filters), placeholderData: keepPreviousData, refetchInterval: usePolling(5000) });
  const groups = found.data?.groups ?? [];
  const chosen = groups.filter((group) => selected.has(keyOf(group)));
  const filtered = Object.keys(writeDeadFilters(filters)).length > 0;
  const change = (next: DeadFilters) => {
    setSelected(NONE);
    setFilters(next);
  };

  return (
    <>
      <PageHeader title="Dead letters" lead="Jobs whose last attempt failed, by their type and error" />
      <Filters filters={filters} groups={groups} onChange={change} filtered={filtered} />
      {found.isError && <ErrorBox error={found.error} title="The dead letters cannot be counted" onRetry={() => void found.refetch()} />}
      {found.isPending && <Skeleton lines={8} />}
      {found.isSuccess && groups.length === 0 && (filtered ? <NoMatch onClear={() => change(readDeadFilters({}))} /> : <NoDeadLetters />)}
      {found.data && groups.length > 0 && (
        <>
          {mayOperate && (
            <Commands
              chosen={chosen}
              all={chosen.length === groups.length}
              onAll={() => setSelected(new Set(groups.map(keyOf)))}
              onCommand={(command) => setAsked({ command, groups: chosen })}
              onClear={() => setSelected(NONE)}
            />
          )}
          <Card flush className="dead-table">
            <GroupTable groups={groups} ownerId={filters.ownerId} selected={mayOperate ? selected : null} onSelect={setSelected} />
            <p className="load-more muted small" aria-live="polite">
              {plural(found.data.jobs, 'job')} in {plural(found.data.total, 'group')}
              {!found.data.complete && ' or more: there are too many error codes to count them all'}
              {found.data.total > groups.length && `, of which the largest ${count(groups.length)} are shown. Filter to see the others.`}
            </p>
          </Card>
        </>
      )}
      {asked && (
        <GroupsDialog
          command={asked.command}
          groups={asked.groups}
          filters={filters}
          onClose={(done) => {
            setAsked(undefined);
            if (done) {
              setSelected(NONE);
            }
          }}
        />
      )}
    </>
  );
}

interface FiltersProps {
  filters: DeadFilters;
  groups: readonly Group[];
  onChange: (filters: DeadFilters) => void;
  filtered: boolean;
}

function Filters({ filters, groups, onChange, filtered }: FiltersProps) {
  const me = useMe();
  const stats = useQuery({ ...statsQuery, staleTime: 30_000 });
  const types = stats.data?.types.filter(({ jobs }) => jobs.FAILED > 0).map(({ jobType }) => jobType) ?? [];
  const codes = [...new Set(groups.map(({ errorCode }) => errorCode ?? NO_CODE))].sort();
  return (
    <div className="row-wrap" role="search" aria-label="Filter dead letters">
      <Choice label="Job type" all="all" value={filters.type} options={types} onChange={(type) => onChange({ ...filters, type })} />
      <TextFilter key={`code ${filters.errorCode}`} label="Error code" value={filters.errorCode} options={codes} onChange={(errorCode) => onChange({ ...filters, errorCode })} />
      <Choice label="Failed" all="at any time" value={filters.seen} options={SEEN} onChange={(seen) => onChange({ ...filters, seen })} />
      {(me.ownerId === null || filters.ownerId) && (
        <TextFilter key={`owner ${filters.ownerId}`} label="Owner" value={filters.ownerId} onChange={(ownerId) => onChange({ ...filters, ownerId })} />
      )}
      {filtered && (
        <Button small variant="quiet" onClick={() => onChange(readDeadFilters({}))}>
          Remove all
        </Button>
      )}
    </div>
  );
}

interface TextFilterProps {
  label: string;
  value: string;
  options?: readonly string[];
  onChange: (value: string) => void;
}

/** TextFilter filters by a text when Enter is pressed, an option is chosen, or the field loses the focus. */
function TextFilter({ label, value, options = [], onChange }: TextFilterProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const apply = (next: string) => next.trim() !== value && onChange(next.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        apply(text);
      }}
    >
      <input
        className="input choice"
        aria-label={label}
        placeholder={`${label}: all`}
        list={id}
        spellCheck={false}
        maxLength={255}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          if (options.includes(event.target.value)) {
            apply(event.target.value);
          }
        }}
        onBlur={() => apply(text)}
      />
      <datalist id={id}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </form>
  );
}

interface CommandsProps {
  chosen: readonly Group[];
  all: boolean; // all shown groups are chosen
  onAll: () => void; // cards have no row of headings with a box for all
  onCommand: (command: GroupCommand) => void;
  onClear: () => void;
}

function Commands({ chosen, all, onAll, onCommand, onClear }: CommandsProps) {
  const selectAll = !all && (
    <Button small className="cards-only" onClick={onAll}>
      Select all that are shown
    </Button>
  );
  if (chosen.length === 0) {
    return (
      <div className="muted small bulk">
        Select groups to redrive or delete their jobs together.
        {selectAll}
      </div>
    );
  }
  return (
    <div className="bulk dead-bulk" role="region" aria-label="Selected groups">
      <strong>
        {plural(chosen.reduce((sum, group) => sum + group.jobs, 0), 'job')} in {plural(chosen.length, 'group')}
      </strong>
      {selectAll}
      <Button small icon="retry" onClick={() => onCommand('retry')}>
        Redrive
      </Button>
      <Button small icon="trash" variant="danger" onClick={() => onCommand('delete')}>
        Delete
      </Button>
      <Button small variant="quiet" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <Card>
      <EmptyState icon="filter" title="No dead letter matches" action={<Button onClick={onClear}>Remove the filters</Button>}>
        No FAILED job matches these filters.
      </EmptyState>
    </Card>
  );
}

function NoDeadLetters() {
  return (
    <Card>
      <EmptyState icon="check" title="No dead letters">
        A job that fails after all its retries, or with an error that a retry cannot help, ends here. It stays until it is redriven or
        deleted.
      </EmptyState>
    </Card>
  );
}
