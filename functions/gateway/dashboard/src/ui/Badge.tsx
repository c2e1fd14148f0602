import type { ReactNode } from 'react';
import './Badge.css';

interface Props {
  tone?: 'plain' | 'good' | 'warn' | 'danger';
  children: ReactNode;
}

/** Badge is a word or two about a thing, such as paused. */
export function Badge({ tone = 'plain', children }: Props) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}
