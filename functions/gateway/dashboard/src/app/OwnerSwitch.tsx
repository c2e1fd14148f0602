import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useMe } from '../api/me';
import { ownersQuery } from '../api/owners';
import { useKey, useOwner } from '../api/session';
import { Combobox } from '../ui/Combobox';
import { Menu } from '../ui/Menu';
import { actFor } from './router';
import './OwnerSwitch.css';

const ALL = 'All owners';

/**
 * OwnerSwitch shows whose jobs an admin of the installation sees: those of all owners, or of the one for which it acts. Without
 * authentication, everyone is such an admin.
 */
export function OwnerSwitch() {
  const me = useMe();
  const key = useKey();
  const owner = useOwner();
  const may = me.installation || owner !== null;
  const owners = useQuery({ ...ownersQuery(''), enabled: may && key === null });
  if (!may || (key === null && owner === null && !owners.data?.owners.length)) {
    return null; // without authentication, many an installation has no owners
  }
  return (
    <div className={owner === null ? 'owner-switch' : 'owner-switch owner-switch-on'}>
      <Menu
        align="end"
        label={
          <>
            <span className="visually-hidden">Owner: </span>
            <span className="who">{owner ?? ALL}</span>
          </>
        }
      >
        {(close) => <Owners onDone={close} />}
      </Menu>
    </div>
  );
}

function Owners({ onDone }: { onDone: () => void }) {
  const acting = useOwner();
  const [text, setText] = useState('');
  const wanted = text.trim();
  const owners = useQuery(ownersQuery(wanted));
  const known = (owners.data?.owners ?? []).filter((name) => name.toLowerCase().includes(wanted.toLowerCase())); // those of a shorter text, until there are others
  const options: { name: string; hint?: string; owner: string | null }[] = [
    ...(wanted === '' && acting !== null ? [{ name: ALL, hint: 'stop acting for one', owner: null }] : []),
    ...known.filter((owner) => owner !== acting).map((owner) => ({ name: owner, owner })),
    ...(wanted === '' || known.includes(wanted) || owners.isPending ? [] : [{ name: wanted, hint: owners.isPlaceholderData ? '' : 'not known yet', owner: wanted }]),
  ];
  return (
    <div className="owner-panel">
      <Combobox
        label="Owner to act for"
        className="input"
        placeholder="Find an owner…"
        maxLength={255}
        autoFocus
        value={text}
        onChange={setText}
        options={options}
        onPick={({ owner }) => {
          onDone();
          actFor(owner);
        }}
        {...(owners.isSuccess && { none: 'No owner has jobs, a key or a limit yet.' })}
      />
      {owners.data?.more && <p className="small muted">More owners match: type on.</p>}
      {owners.isError && <p className="small">The owners cannot be listed: {owners.error.message}</p>}
    </div>
  );
}
