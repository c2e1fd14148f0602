import { useState } from 'react';
import { plural } from '../../format/number';
import { Button } from '../../ui/Button';
import { BulkDialog } from './BulkDialog';
import { COMMANDS, type BulkCommand } from './bulk';
import type { Filters } from './filters';

interface Props {
  filters: Filters;
  selected: readonly string[];
  all: boolean; // all shown rows are selected
  onAll: () => void; // cards have no row of headings with a box for all
  onDone: () => void;
}

/** BulkBar sends a command to the selected jobs, or to all that match the filters. */
export function BulkBar({ filters, selected, all, onAll, onDone }: Props) {
  const [everything, setEverything] = useState(false);
  const [command, setCommand] = useState<BulkCommand>();
  const none = selected.length === 0;
  const wide = everything && all;

  const selectAll = !all && (
    <Button small className="cards-only" onClick={onAll}>
      Select all that are shown
    </Button>
  );
  if (none) {
    return (
      <div className="muted small bulk">
        Select jobs to cancel, retry, reschedule or delete them together.
        {selectAll}
      </div>
    );
  }
  return (
    <div className="bulk" role="region" aria-label="Selected jobs">
      <strong>{wide ? 'Everything that matches is selected' : `${plural(selected.length, 'job')} selected`}</strong>
      {selectAll}
      {all && (
        <Button small variant="quiet" onClick={() => setEverything(!everything)}>
          {wide ? `Only the ${plural(selected.length, 'job')} shown` : 'Select everything that matches'}
        </Button>
      )}
      {COMMANDS.map(({ command: each, label, icon }) => (
        <Button key={each} small icon={icon} variant={each === 'delete' ? 'danger' : 'plain'} onClick={() => setCommand(each)}>
          {label}
        </Button>
      ))}
      <Button small variant="quiet" onClick={onDone}>
        Clear
      </Button>
      {command && (
        <BulkDialog
          command={command}
          target={wide ? { filters } : { jobIds: [...selected] }}
          onClose={(done) => {
            setCommand(undefined);
            if (done) {
              setEverything(false);
              onDone();
            }
          }}
        />
      )}
    </div>
  );
}
