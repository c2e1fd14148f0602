import { Menu } from '../../ui/Menu';
import { columns } from './columns';

interface Props {
  shown: readonly string[];
  onChange: (shown: string[]) => void;
}

/** ColumnsMenu selects the columns; the browser stores the selection. */
export function ColumnsMenu({ shown, onChange }: Props) {
  return (
    <Menu label="Columns" icon="columns" align="end">
      {() =>
        columns.map(({ id, header }) => (
          <label key={id} className="menu-item">
            <input
              type="checkbox"
              checked={shown.includes(id)}
              disabled={id === 'job'}
              onChange={(event) => onChange(event.target.checked ? [...shown, id] : shown.filter((other) => other !== id))}
            />
            {header}
          </label>
        ))
      }
    </Menu>
  );
}
