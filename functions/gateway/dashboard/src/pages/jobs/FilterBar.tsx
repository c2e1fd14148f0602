import { Button } from '../../ui/Button';
import { MEANING, STATUSES } from '../../ui/StatusBadge';
import { isEmpty, readFilters, TIMES, toggleStatus, type Filters } from './filters';
import { SearchBox } from './SearchBox';
import { TimeFilter } from './TimeFilter';

interface Props {
  filters: Filters;
  tags: readonly string[];
  onChange: (filters: Filters) => void;
}

/** FilterBar shows and changes the filters of the list, all of which are in the address, and in the text of its search box. */
export function FilterBar({ filters, tags, onChange }: Props) {
  return (
    <div className="filters">
      <SearchBox filters={filters} tags={tags} onSearch={onChange} />
      <div className="row-wrap">
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
        {TIMES.map((time) => (
          <TimeFilter key={time.label} time={time} filters={filters} onChange={onChange} />
        ))}
        {!isEmpty(filters) && (
          <Button small variant="quiet" onClick={() => onChange(readFilters({}))}>
            Remove all
          </Button>
        )}
      </div>
    </div>
  );
}
