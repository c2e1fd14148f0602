import { useEffect, useState } from 'react';
import { Button, IconButton } from './Button';
import './CopyButton.css';

interface Props {
  text: string;
  label: string;
  words?: string;
}

/** CopyButton puts text on the clipboard. With words it shows them beside its icon. */
export function CopyButton({ text, label, words }: Props) {
  const [copied, setCopied] = useState(false);

  useEffect(() => {
    if (!copied) {
      return;
    }
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);

  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  const icon = copied ? 'check' : 'copy';
  if (words === undefined) {
    return <IconButton icon={icon} label={copied ? 'Copied' : label} className="copy-button" onClick={copy} />;
  }
  return (
    <Button small icon={icon} aria-label={label} onClick={copy}>
      {copied ? 'Copied' : words}
    </Button>
  );
}
