import { Field } from '../../ui/Field';
import type { Changes } from './changes';

interface Props {
  text: string;
  changes: Changes;
  example: string;
  onChange: (text: string) => void;
}

/** PatchField edits a JSON Merge Patch. */
export function PatchField({ text, changes, example, onChange }: Props) {
  return (
    <Field
      label="Changes"
      hint={
        <>
          A JSON Merge Patch: <code>{example}</code> sets, removes and merges.
        </>
      }
      error={changes.ok ? undefined : changes.problem}
    >
      {(props) => <textarea {...props} className="input" rows={8} spellCheck={false} value={text} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}
