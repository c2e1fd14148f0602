import type { ReactNode } from 'react';
import { Icon, type IconName } from './Icon';
import './EmptyState.css';

interface Props {
  icon: IconName;
  title: string;
  children: ReactNode;
  action?: ReactNode;
}

/** EmptyState explains why a list is empty, and how to change that. */
export function EmptyState({ icon, title, children, action }: Props) {
  return (
    <div className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={26} />
      </span>
      <h2 className="empty-title">{title}</h2>
      <div className="muted empty-text">{children}</div>
      {action}
    </div>
  );
}
