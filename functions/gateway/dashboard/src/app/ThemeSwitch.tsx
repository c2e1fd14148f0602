import { IconButton } from '../ui/Button';
import type { IconName } from '../ui/Icon';
import { setTheme, useTheme, type Theme } from './theme';

const looks: Record<Theme, { icon: IconName; next: Theme }> = {
  system: { icon: 'system', next: 'light' },
  light: { icon: 'sun', next: 'dark' },
  dark: { icon: 'moon', next: 'system' },
};

/** ThemeSwitch switches between the system's theme, light and dark. */
export function ThemeSwitch() {
  const theme = useTheme();
  const { icon, next } = looks[theme];
  return <IconButton icon={icon} label={`Theme: ${theme}. Change to ${next}`} onClick={() => setTheme(next)} />;
}
