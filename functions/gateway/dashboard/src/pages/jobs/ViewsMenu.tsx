import { useState, type FormEvent } from 'react';
import { parseSearch } from '../../app/paths';
import { Button, IconButton } from '../../ui/Button';
import { Menu } from '../../ui/Menu';
import { useStored } from '../../ui/stored';
import { toast } from '../../ui/toasts';
import { isEmpty, readFilters, type Filters } from './filters';
import { BUILTIN, isViews, save, searchOf, type View } from './views';

interface Props {
  filters: Filters;
  onChoose: (filters: Filters) => void;
}

/** ViewsMenu applies a named set of filters, and stores the current one under a name in this browser. */
export function ViewsMenu({ filters, onChoose }: Props) {
  const [views, setViews] = useStored('jobweaver.views', [], isViews);
  const [name, setName] = useState('');
  const current = searchOf(filters);

  const remove = (view: View) => {
    const before = views;
    setViews(views.filter((each) => each !== view));
    toast(`The view “${view.name}” is deleted.`, { action: { label: 'Undo', run: () => setViews(before) } });
  };

  const keep = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== '') {
      setViews(save(views, name.trim(), filters));
      toast(`The view “${name.trim()}” is saved in this browser.`);
      setName('');
    }
  };

  const item = (view: View, close: () => void) => (
    <button
      type="button"
      className="menu-item grow"
      aria-current={view.search === current}
      onClick={() => {
        onChoose(readFilters(parseSearch(view.search)));
        close();
      }}
    >
      {view.name}
    </button>
  );

  return (
    <Menu label="Views" icon="save" align="end">
      {(close) => (
        <>
          {BUILTIN.map((view) => (
            <div key={view.name}>{item(view, close)}</div>
          ))}
          {views.map((view) => (
            <div key={view.name} className="row">
              {item(view, close)}
              <IconButton icon="trash" label={`Delete the view ${view.name}`} onClick={() => remove(view)} />
            </div>
          ))}
          {!isEmpty(filters) && (
            <form className="view-form" onSubmit={keep}>
              <input
                className="input"
                aria-label="Name of the view"
                placeholder="Name for these filters"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
              <Button type="submit" small>
                Save
              </Button>
            </form>
          )}
        </>
      )}
    </Menu>
  );
}
