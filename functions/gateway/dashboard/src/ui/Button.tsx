import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { Icon, type IconName } from './Icon';
import './Button.css';

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: IconName;
  busy?: boolean;
  small?: boolean;
  ref?: Ref<HTMLButtonElement>;
  children?: ReactNode;
}

export function Button({ variant = 'plain', icon, busy = false, small = false, children, className, ...rest }: Props) {
  const classes = ['button', `button-${variant}`, small ? 'button-small' : '', className ?? ''].join(' ').trim();
  return (
    <button type="button" {...rest} className={classes} aria-busy={busy || undefined} disabled={rest.disabled || busy}>
      {busy ? <span className="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}

interface IconButtonProps extends Omit<Props, 'children' | 'icon'> {
  icon: IconName;
  label: string;
}

/** IconButton shows only an icon; label is its name, and its tooltip. */
export function IconButton({ icon, label, className, variant = 'quiet', small: _small, busy: _busy, ...rest }: IconButtonProps) {
  return (
    <button type="button" title={label} aria-label={label} {...rest} className={`icon-button button-${variant} ${className ?? ''}`}>
      <Icon name={icon} size={18} />
    </button>
  );
}
