import { type FormEvent, useState } from 'react';
import { base } from '../api/base';
import { useMe } from '../api/me';
import { session, useKey, useOwner } from '../api/session';
import { Button } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Menu } from '../ui/Menu';

/** Who shows the owner of the key, and lets an admin of the installation act for an owner. */
export function Who() {
  const me = useMe();
  const key = useKey();
  const owner = useOwner();
  const name = me.ownerId ?? (me.installation ? 'Installation' : me.actor);
  return (
    <Menu label={<span className="who">{owner === null ? name : `For ${owner}`}</span>} align="end">
      {(close) => (
        <div className="who-panel">
          <p>
            <strong>{me.actor}</strong>
          </p>
          <p className="small muted">
            {me.ownerId ? `Owner ${me.ownerId}` : 'All owners'} · {me.roles.join(', ') || 'no role'}
          </p>
          {key !== null && me.installation && <ActFor onDone={close} />}
          {owner !== null && (
            <button type="button" className="menu-item" onClick={() => session.actFor(null)}>
              <Icon name="close" /> Stop acting for {owner}
            </button>
          )}
          {key === null ? (
            <p className="small muted">This installation runs without authentication.</p>
          ) : (
            <button type="button" className="menu-item" onClick={session.logOut}>
              <Icon name="logout" /> Log out
            </button>
          )}
          <a className="menu-item" href={`${base}/api/reference`}>
            <Icon name="link" /> API reference
          </a>
        </div>
      )}
    </Menu>
  );
}

function ActFor({ onDone }: { onDone: () => void }) {
  const [owner, setOwner] = useState('');
  const act = (event: FormEvent) => {
    event.preventDefault();
    if (owner.trim() !== '') {
      session.actFor(owner.trim());
      onDone();
    }
  };
  return (
    <form className="who-owner" onSubmit={act}>
      <input
        className="input"
        aria-label="Owner to act for"
        placeholder="Owner"
        maxLength={255}
        value={owner}
        onChange={(event) => setOwner(event.target.value)}
      />
      <Button type="submit" small>
        Act for the owner
      </Button>
    </form>
  );
}
