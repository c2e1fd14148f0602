import './Bar.css';

interface Props {
  label: string;
  value: number;
  max: number;
}

/** Bar shows which part of a whole is done or taken. */
export function Bar({ label, value, max }: Props) {
  return <progress className="bar" aria-label={label} value={Math.min(value, max)} max={Math.max(max, 1)} />;
}
