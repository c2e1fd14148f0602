import type { Table } from '@tanstack/react-table';
import { Menu } from '../../ui/Menu';
import type { Job } from './rows';

interface Props {
  table: Table<Job>;
  shown: readonly string[];
  onChange: (shown: string[]) => void;
}

/** ColumnsMenu selects the columns; the browser stores the selection. */
export function ColumnsMenu({ table, shown, onChange }: Props) {
  return (
    <Menu label="Columns" icon="columns" align="end">
      {() =>
        table.getAllLeafColumns().map((column) => (
          <label key={column.id} className="menu-item">
            <input
              type="checkbox"
              checked={shown.includes(column.id)}
              disabled={column.id === 'job'}
              onChange={(event) => onChange(event.target.checked ? [...shown, column.id] : shown.filter((id) => id !== column.id))}
            />
            {String(column.columnDef.header)}
          </label>
        ))
      }
    </Menu>
  );
}
