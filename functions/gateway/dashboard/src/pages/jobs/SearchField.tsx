import { useState, type FormEvent } from 'react';
import { Icon } from '../../ui/Icon';

interface Props {
  value: string;
  onSearch: (value: string) => void;
}

/** SearchField searches when Enter is pressed, or when the empty field loses the focus. */
export function SearchField({ value, onSearch }: Props) {
  const [text, setText] = useState(value);

  const search = (event: FormEvent) => {
    event.preventDefault();
    onSearch(text);
  };

  return (
    <form className="search-field" onSubmit={search}>
      <Icon name="search" />
      <input
        className="input"
        type="search"
        aria-label="Search jobs by id, key, tag or error"
        placeholder="Id, key, tag, error…"
        spellCheck={false}
        maxLength={255}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => text === '' && value !== '' && onSearch('')}
      />
    </form>
  );
}
