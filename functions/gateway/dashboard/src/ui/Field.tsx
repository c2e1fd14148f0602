import { useId, type ReactNode } from 'react';
import './Field.css';

interface Props {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | undefined;
  children: (props: { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined }) => ReactNode;
}

/** Field is a labelled input with its hint and its error; children renders the input with the given properties. */
export function Field({ label, hint, error, children }: Props) {
  const id = useId();
  const notes = `${id}-notes`;
  const noted = hint !== undefined || error !== undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': noted ? notes : undefined, 'aria-invalid': error === undefined ? undefined : true })}
      {noted && (
        <div id={notes} className="small">
          {error !== undefined && <p className="field-error">{error}</p>}
          {hint !== undefined && <p className="muted">{hint}</p>}
        </div>
      )}
    </div>
  );
}
