import './Choice.css';

interface Props {
  label: string;
  value: string;
  options: readonly (string | { value: string; label: string })[];
  onChange: (value: string) => void;
  all?: string; // the words for no choice; absent: there is always one
}

/** Choice selects one of the options, or none. It keeps a value that is not among the options, such as a job type without jobs. */
export function Choice({ label, value, options, onChange, all }: Props) {
  const known = options.map((option) => (typeof option === 'string' ? { value: option, label: option } : option));
  const shown = value === '' || known.some((option) => option.value === value) ? known : [{ value, label: value }, ...known];
  return (
    <select className="input choice" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      {all && (
        <option value="">
          {label}: {all}
        </option>
      )}
      {shown.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}
