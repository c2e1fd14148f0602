import { useState } from 'react';
import { parse, stringify } from '../../api/json';
import { Field } from '../../ui/Field';
import type { FieldProps } from './SchemaField';

/** JsonField edits any value as JSON. Text that is not JSON stays in the field and changes nothing. */
export function JsonField({ schema, path, name, required, value, errors, onChange }: FieldProps) {
  const [draft, setDraft] = useState<string>();
  const [problem, setProblem] = useState<string>();

  const change = (text: string) => {
    setDraft(text);
    if (text.trim() === '' && !required) {
      setProblem(undefined);
      onChange(undefined);
      return;
    }
    try {
      onChange(parse(text));
      setProblem(undefined);
    } catch (error) {
      setProblem(`This is no JSON: ${(error as Error).message}`);
    }
  };

  const leave = () => {
    if (problem === undefined) {
      setDraft(undefined);
    }
  };

  return (
    <Field label={`${schema.title ?? name} (JSON)`} hint={schema.description} error={problem ?? errors.get(path)}>
      {(field) => (
        <textarea
          {...field}
          className="input"
          rows={4}
          spellCheck={false}
          value={draft ?? (value === undefined ? '' : stringify(value, 2))}
          onChange={(event) => change(event.target.value)}
          onBlur={leave}
        />
      )}
    </Field>
  );
}
