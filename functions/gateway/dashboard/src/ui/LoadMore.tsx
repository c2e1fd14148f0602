import { plural } from '../format/number';
import { Button } from './Button';
import './Table.css';

interface Props {
  shown: number;
  one: string; // the noun for an entry, in the singular
  many?: string;
  hasMore: boolean;
  loading: boolean;
  onMore: () => void;
}

/** LoadMore ends a list that is read by cursor: it shows how many entries are shown, and a button for the next page. */
export function LoadMore({ shown, one, many = `${one}s`, hasMore, loading, onMore }: Props) {
  return (
    <div className="load-more">
      <span className="muted small" aria-live="polite">
        {plural(shown, one, many)} {hasMore ? 'shown' : 'in all'}
      </span>
      {hasMore && (
        <Button small busy={loading} onClick={onMore}>
          Load more
        </Button>
      )}
    </div>
  );
}
