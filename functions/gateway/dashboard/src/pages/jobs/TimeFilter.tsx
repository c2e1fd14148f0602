import { instant } from '../../format/time';
import { IconButton } from '../../ui/Button';
import { isSpan, type Filters, type Time } from './filters';

const SPANS = [
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last day' },
  { value: '7d', label: 'Last week' },
  { value: '30d', label: 'Last 30 days' },
] as const;

interface Props {
  time: Time;
  filters: Filters;
  onChange: (filters: Filters) => void;
}

/** shown also shows a text of the address that is no instant; the API refuses it. */
function shown(text: string): string {
  return Number.isNaN(Date.parse(text)) ? text : instant(text);
}

/** TimeFilter selects when jobs were accepted, or ended. A different value in the address is kept as another choice. */
export function TimeFilter({ time, filters, onChange }: Props) {
  const since = filters[time.since];
  const until = filters[time.until];
  const known = since === '' || SPANS.some((span) => span.value === since);
  return (
    <>
      <select
        className="input choice"
        aria-label={time.label}
        value={since}
        onChange={(event) => onChange({ ...filters, [time.since]: event.target.value, [time.until]: '' })}
      >
        <option value="">{time.label}: at any time</option>
        {SPANS.map((span) => (
          <option key={span.value} value={span.value}>
            {time.label}: {span.label.toLowerCase()}
          </option>
        ))}
        {!known && <option value={since}>{`${time.label}: ${isSpan(since) ? `last ${since}` : `since ${shown(since)}`}`}</option>}
      </select>
      {until && (
        <span className="set-filter">
          {time.label} until <strong>{shown(until)}</strong>
          <IconButton icon="close" label={`Remove the filter ${time.label} until`} onClick={() => onChange({ ...filters, [time.until]: '' })} />
        </span>
      )}
    </>
  );
}
