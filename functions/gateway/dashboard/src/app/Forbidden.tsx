import type { ReactNode } from 'react';
import { useMay, useMe, type Need } from '../api/me';
import { EmptyState } from '../ui/EmptyState';
import { PageHeader } from './PageHeader';

interface Props {
  needs: Need;
  title: string;
  children: ReactNode;
}

/** Forbidden shows its children to users who have the role, and names the missing role to others. */
export function Forbidden({ needs, title, children }: Props) {
  const may = useMay();
  const { actor, roles } = useMe();
  if (may(needs)) {
    return children;
  }
  return (
    <>
      <PageHeader title={title} />
      <EmptyState icon="keys" title={needs === 'installation' ? 'This page is for admins of the installation' : `This page needs the role ${needs}`}>
        You are {actor}, with the role {roles.join(', ') || 'none'}. Log in with a key that has the role, or ask an admin for one.
      </EmptyState>
    </>
  );
}
