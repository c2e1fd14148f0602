import { base } from '../api/base';
import { useMe } from '../api/me';
import { session, useKey, useOwner } from '../api/session';
import { setTimes, TIMES, useTimes } from '../format/times';
import { Icon } from '../ui/Icon';
import { Menu } from '../ui/Menu';
import { Segments } from '../ui/Segments';
import { setTheme, useTheme, type Theme } from './theme';

const THEMES: readonly { value: Theme; label: string }[] = [
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

/** Who shows who the user is, chooses how times and colours are shown, and logs out. */
export function Who() {
  const me = useMe();
  const key = useKey();
  const times = useTimes();
  const theme = useTheme();
  const acting = useOwner() !== null; // then ownerId is not the key's
  const name = acting || (me.installation && me.ownerId === null) ? 'Installation' : (me.ownerId ?? me.actor);
  return (
    <Menu icon="user" label={<span className="who who-name">{name}</span>} align="end">
      {() => (
        <div className="who-panel">
          <p>
            <strong>{me.actor}</strong>
          </p>
          <p className="small muted">
            {me.ownerId ? `Owner ${me.ownerId}` : me.installation ? 'All owners' : 'What has no owner'} · {me.roles.join(', ') || 'no role'}
          </p>
          <div className="who-choice">
            <span className="small muted">Times</span>
            <Segments label="How times are shown" value={times} options={TIMES} onChange={setTimes} />
          </div>
          <div className="who-choice">
            <span className="small muted">Theme</span>
            <Segments label="Theme" value={theme} options={THEMES} onChange={setTheme} />
          </div>
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
