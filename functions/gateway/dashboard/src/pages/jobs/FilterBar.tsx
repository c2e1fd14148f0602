import { useQuery } from '@tanstack/react-query';
import { statsQuery } from '../../api/queries';
import { Button, IconButton } from '../../ui/Button';
import { Menu } from '../../ui/Menu';
import { MEANING, STATUSES } from '../../ui/StatusBadge';
import { isEmpty, LABELS, readFilters, SHOWN, TEXTS, TIMES, toggleStatus, withText, type Filters } from './filters';
import { SearchField } from './SearchField';
import { TextFilterForm } from './TextFilterForm';
import { TimeFilter } from './TimeFilter';

interface Props {
  filters: Filters;
  onChange: (filters: Filters) => void;
}

/** FilterBar shows and changes the filters of the list, all of which are in the address. */
export function FilterBar({ filters, onChange }: Props) {
  const stats = useQuery({ ...statsQuery, staleTime: 30_000 });
  const types = stats.data?.types.map((type) => type.jobType) ?? [];
  const queues = stats.data?.queues.map((queue) => queue.queue) ?? [];
  const set = TEXTS.filter((name) => filters.texts[name] !== undefined);

  return (
    <div className="filters" role="search" aria-label="Filter jobs">
      <div className="chips" role="group" aria-label="States">
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            className={`chip status-${status.toLowerCase()}`}
            aria-pressed={filters.status.includes(status)}
            title={MEANING[status]}
            onClick={() => onChange(toggleStatus(filters, status))}
          >
            <span className="status-dot" aria-hidden="true" />
            {status}
          </button>
        ))}
      </div>
      <div className="row-wrap">
        <SearchField key={filters.texts.q ?? ''} value={filters.texts.q ?? ''} onSearch={(value) => onChange(withText(filters, 'q', value))} />
        <Choice label="Job type" value={filters.texts.type ?? ''} options={types} onChange={(value) => onChange(withText(filters, 'type', value))} />
        <Choice label="Queue" value={filters.texts.queue ?? ''} options={queues} onChange={(value) => onChange(withText(filters, 'queue', value))} />
        {TIMES.map((time) => (
          <TimeFilter key={time.label} time={time} filters={filters} onChange={onChange} />
        ))}
        <Menu label="More filters" icon="filter">
          {(close) => (
            <TextFilterForm
              filters={filters}
              onApply={(next) => {
                onChange(next);
                close();
              }}
            />
          )}
        </Menu>
        {set
          .filter((name) => !SHOWN.includes(name))
          .map((name) => (
            <span key={name} className="set-filter">
              {LABELS[name]} <strong>{filters.texts[name]}</strong>
              <IconButton icon="close" label={`Remove the filter ${LABELS[name]}`} onClick={() => onChange(withText(filters, name, ''))} />
            </span>
          ))}
        {filters.noErrorCode && (
          <span className="set-filter">
            <strong>Without an error code</strong>
            <IconButton icon="close" label="Remove the filter Without an error code" onClick={() => onChange({ ...filters, noErrorCode: false })} />
          </span>
        )}
        {!isEmpty(filters) && (
          <Button small variant="quiet" onClick={() => onChange(readFilters({}))}>
            Remove all
          </Button>
        )}
      </div>
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly string[];
  onChange: (value: string) => void;
}

/** Choice keeps a value that is not among the options, such as a job type without jobs. */
function Choice({ label, value, options, onChange }: ChoiceProps) {
  const all = value === '' || options.includes(value) ? options : [value, ...options];
  return (
    <select className="input choice" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{label}: all</option>
      {all.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  );
}
