import { instant } from '../../format/time';
import { isSpan, type Filters } from './filters';

const SPANS = [
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last day' },
  { value: '7d', label: 'Last week' },
  { value: '30d', label: 'Last 30 days' },
] as const;

interface Props {
  filters: Filters;
  onChange: (filters: Filters) => void;
}

/** TimeFilter selects when jobs were accepted. A different value in the address is kept as another choice. */
export function TimeFilter({ filters, onChange }: Props) {
  const { since, until } = filters;
  const known = since === '' || SPANS.some((span) => span.value === since);
  return (
    <>
      <select
        className="input choice"
        aria-label="Accepted"
        value={since}
        onChange={(event) => onChange({ ...filters, since: event.target.value, until: '' })}
      >
        <option value="">Accepted: at any time</option>
        {SPANS.map((span) => (
          <option key={span.value} value={span.value}>
            {span.label}
          </option>
        ))}
        {!known && <option value={since}>{isSpan(since) ? `Last ${since}` : `Since ${instant(since)}`}</option>}
      </select>
      {until && <span className="set-filter">until {instant(until)}</span>}
    </>
  );
}
