import { useRouter } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, MouseEvent } from 'react';

interface Props extends AnchorHTMLAttributes<HTMLAnchorElement> {
  href: string;
}

/** Link opens a page of the dashboard without a new document. Its href is an address made by `paths`. */
export function Link({ href, onClick, ...rest }: Props) {
  const router = useRouter();
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const ours = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (ours && !event.defaultPrevented) {
      event.preventDefault();
      router.history.push(href);
    }
  };
  return <a {...rest} href={router.history.createHref(href)} onClick={go} />;
}
