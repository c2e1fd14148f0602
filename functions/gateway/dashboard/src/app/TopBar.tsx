import { LiveState } from '../live/LiveState';
import { IconButton } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Link } from './Link';
import { Logo } from './Logo';
import { OwnerSwitch } from './OwnerSwitch';
import { paths } from './paths';
import { Who } from './Who';

interface Props {
  onMenu: () => void;
  onSearch: () => void;
  onHelp: () => void;
}

export function TopBar({ onMenu, onSearch, onHelp }: Props) {
  return (
    <header className="topbar">
      <IconButton icon="menu" label="Open navigation" className="topbar-menu" onClick={onMenu} />
      <Link href={paths.overview()} className="brand" aria-label="JobWeaver">
        <Logo />
        <span>JobWeaver</span>
      </Link>
      <button type="button" className="search-button" onClick={onSearch}>
        <Icon name="search" />
        <span className="search-words">Search jobs, go anywhere</span>
        <kbd>Ctrl K</kbd>
      </button>
      <div className="topbar-end">
        <OwnerSwitch />
        <LiveState />
        <IconButton icon="keyboard" label="Keyboard help" className="topbar-help" onClick={onHelp} />
        <Who />
      </div>
    </header>
  );
}
