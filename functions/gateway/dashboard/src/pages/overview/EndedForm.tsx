import { useId, useState, type FormEvent } from 'react';
import { fromLocalInput, toLocalInput } from '../../format/time';
import { Button } from '../../ui/Button';

const HOUR_MS = 3_600_000;

/** EndedForm leads to the jobs that ended within a span of time. Dragging over the chart does the same. */
export function EndedForm({ onShow }: { onShow: (since: string, until: string) => void }) {
  const id = useId();
  const [from, setFrom] = useState(() => toLocalInput(new Date(Date.now() - HOUR_MS)).slice(0, 16));
  const [until, setUntil] = useState(() => toLocalInput(new Date()).slice(0, 16));
  const [since, end] = [fromLocalInput(from), fromLocalInput(until)];
  const wrong = since === null || end === null ? 'Enter a date and a time.' : since >= end ? 'The end must be after the beginning.' : '';

  const show = (event: FormEvent) => {
    event.preventDefault();
    if (since !== null && end !== null && wrong === '') {
      onShow(since, end);
    }
  };
  return (
    <form className="row-wrap ended-form" onSubmit={show}>
      <label className="small muted" htmlFor={`${id}-from`}>
        Jobs that ended from
      </label>
      <input id={`${id}-from`} className="input" type="datetime-local" value={from} max={until} onChange={(event) => setFrom(event.target.value)} />
      <label className="small muted" htmlFor={`${id}-until`}>
        to
      </label>
      <input id={`${id}-until`} className="input" type="datetime-local" value={until} onChange={(event) => setUntil(event.target.value)} />
      <Button small type="submit" disabled={wrong !== ''} title={wrong || undefined}>
        Show
      </Button>
      <span className="small muted flow-hint">or drag over the chart</span>
    </form>
  );
}
