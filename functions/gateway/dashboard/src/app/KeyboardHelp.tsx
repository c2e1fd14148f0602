import { Dialog } from '../ui/Dialog';
import { listed } from '../ui/shortcuts';
import './KeyboardHelp.css';

/** KeyboardHelp lists the keys that do something on this page. */
export function KeyboardHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl className="keys">
        {listed().map((shortcut) => (
          <div key={shortcut.keys}>
            <dt>
              <Keys keys={shortcut.keys} />
            </dt>
            <dd>{shortcut.does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>Search and go anywhere</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close what is open</dd>
        </div>
      </dl>
    </Dialog>
  );
}

function Keys({ keys }: { keys: string }) {
  return keys.split(' ').map((key, i) => (
    <span key={i}>
      {i > 0 && ' then '}
      <kbd>{key}</kbd>
    </span>
  ));
}
