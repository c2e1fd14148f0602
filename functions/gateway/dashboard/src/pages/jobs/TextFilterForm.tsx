import { useState, type FormEvent } from 'react';
import { Button } from '../../ui/Button';
import { Field } from '../../ui/Field';
import { LABELS, SHOWN, TEXTS, withText, type Filters } from './filters';

const OFFERED = TEXTS.filter((name) => !SHOWN.includes(name));

/** TextFilterForm has the filters that are not on the page; they take effect when they are applied. */
export function TextFilterForm({ filters, onApply }: { filters: Filters; onApply: (filters: Filters) => void }) {
  const [draft, setDraft] = useState(filters);

  const apply = (event: FormEvent) => {
    event.preventDefault();
    const trimmed = OFFERED.reduce((all, name) => withText(all, name, all.texts[name] ?? ''), draft);
    onApply(trimmed);
  };

  return (
    <form className="filter-form" onSubmit={apply}>
      {OFFERED.map((name) => (
        <Field key={name} label={LABELS[name]} {...(name === 'traceId' && { hint: 'The jobs of a batch have the same.' })}>
          {(props) => (
            <input
              {...props}
              className="input"
              spellCheck={false}
              value={draft.texts[name] ?? ''}
              onChange={(event) => setDraft({ ...draft, texts: { ...draft.texts, [name]: event.target.value } })}
            />
          )}
        </Field>
      ))}
      <label className="row">
        <input
          type="checkbox"
          checked={draft.noErrorCode && !draft.texts.errorCode}
          onChange={(event) => setDraft({ ...withText(draft, 'errorCode', ''), noErrorCode: event.target.checked })}
        />
        Without an error code
      </label>
      <Button type="submit" variant="primary" small>
        Apply
      </Button>
    </form>
  );
}
