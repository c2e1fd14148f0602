import { createContext, useContext } from 'react';
import type { Schemas } from './client';

export type Me = Schemas['Me'];
export type Role = Schemas['KeyRole'];

/** Need is what a page or an action needs: a role, or an admin of the installation, which belongs to no owner. */
export type Need = Role | 'installation';

export const MeContext = createContext<Me | null>(null);

export function useMe(): Me {
  const me = useContext(MeContext);
  if (me === null) {
    throw new Error('useMe is called outside of the session');
  }
  return me;
}

/** asksForKey returns whether requests to the installation need an API key. */
export const asksForKey = ({ actor }: Pick<Me, 'actor'>): boolean => actor !== 'anonymous';

/** may returns whether these roles include a role: admin all of operate, operate all of read and submit. */
export function may(roles: Role[], wanted: Role): boolean {
  if (roles.includes('admin') || roles.includes(wanted)) {
    return true;
  }
  return roles.includes('operate') && wanted !== 'admin';
}

/** useMay returns a function that checks what the user's key may do. */
export function useMay(): (need: Need) => boolean {
  const me = useMe();
  return (need) => (need === 'installation' ? me.installation : may(me.roles, need));
}
