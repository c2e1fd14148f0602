import { useState, type FormEvent } from 'react';
import { fromLocalInput, inputZone, momentToMinute, toLocalInput } from '../../format/time';
import { useTimes } from '../../format/times';
import { Button } from '../../ui/Button';
import { Field } from '../../ui/Field';
import { Menu } from '../../ui/Menu';
import { isSpan, type Filters, type Time } from './filters';

const SPANS = [
  { value: '', label: 'At any time' },
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: 'today', label: 'Today' },
  { value: 'yesterday', label: 'Yesterday' },
  { value: '24h', label: 'Last 24 h' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
] as const;

interface Props {
  time: Time;
  filters: Filters;
  onChange: (filters: Filters) => void;
}

/** TimeFilter selects when jobs were accepted, or ended: one of a few spans, or from an instant to another. */
export function TimeFilter({ time, filters, onChange }: Props) {
  useTimes();
  const since = filters[time.since];
  const until = filters[time.until];
  const set = (from: string, to: string) => onChange({ ...filters, [time.since]: from, [time.until]: to });
  return (
    <Menu icon="clock" label={`${time.label}: ${words(since, until, new Date())}`}>
      {(close) => (
        <>
          <div className="time-spans" role="group" aria-label={time.label}>
            {SPANS.map((span) => (
              <button
                key={span.value}
                type="button"
                className="menu-item"
                aria-pressed={since === span.value && until === ''}
                onClick={() => {
                  set(span.value, '');
                  close();
                }}
              >
                {span.label}
              </button>
            ))}
          </div>
          <FromTo
            since={since}
            until={until}
            onApply={(from, to) => {
              set(from, to);
              close();
            }}
          />
        </>
      )}
    </Menu>
  );
}

/** words also shows a text of the address that is no instant; the API refuses it. */
function words(since: string, until: string, now: Date): string {
  const at = (text: string) => (Number.isNaN(Date.parse(text)) ? text : momentToMinute(text, now));
  const span = SPANS.find(({ value }) => value === since)?.label.toLowerCase();
  const from = span ?? (isSpan(since) ? `last ${since}` : `from ${at(since)}`);
  if (until === '') {
    return from;
  }
  return since === '' ? `until ${at(until)}` : `${from} to ${at(until)}`;
}

function FromTo({ since, until, onApply }: { since: string; until: string; onApply: (since: string, until: string) => void }) {
  const [from, setFrom] = useState(input(since));
  const [to, setTo] = useState(input(until));
  const apply = (event: FormEvent) => {
    event.preventDefault();
    onApply(fromLocalInput(from) ?? '', fromLocalInput(to) ?? '');
  };
  return (
    <form className="filter-form" onSubmit={apply}>
      <Field label="From">
        {(props) => <input {...props} className="input" type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} />}
      </Field>
      <Field label="To" hint={inputZone()}>
        {(props) => <input {...props} className="input" type="datetime-local" value={to} onChange={(event) => setTo(event.target.value)} />}
      </Field>
      <Button type="submit" variant="primary" small disabled={from === '' && to === ''}>
        Apply
      </Button>
    </form>
  );
}

/** input returns the value of an input for an instant; empty for a span. */
function input(text: string): string {
  const at = new Date(isSpan(text) ? '' : text);
  return Number.isNaN(at.getTime()) ? '' : toLocalInput(at).slice(0, 16);
}
