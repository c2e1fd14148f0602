import type { Option } from '../ui/Combobox';
import type { IconName } from '../ui/Icon';

export interface Command extends Option {
  icon: IconName;
  run: () => void;
}

/** matching returns the commands whose name has each of the typed words, in any order. */
export function matching(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return commands.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}
