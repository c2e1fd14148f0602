import { CopyButton } from './CopyButton';
import { isolated } from './isolated';
import './Code.css';

interface Props {
  text: string;
  label: string;
}

/** Code shows preformatted text in a box that scrolls, with a button that copies it. */
export function Code({ text, label }: Props) {
  return (
    <div className="code">
      <CopyButton text={text} label={`Copy ${label}`} />
      <pre tabIndex={0} role="region" aria-label={label} dir="ltr">
        {isolated(text).map((piece, i) => (piece.isolate ? <bdi key={i}>{piece.text}</bdi> : piece.text))}
      </pre>
    </div>
  );
}
