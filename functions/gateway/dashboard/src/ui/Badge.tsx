import type { ReactNode } from 'react';
import './Badge.css';

interface Props {
  tone?: 'plain' | 'good' | 'warn' | 'danger';
  children: ReactNode;
}

/** Badge shows one or two words about an item, such as paused. */
export function Badge({ tone = 'plain', children }: Props) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}
