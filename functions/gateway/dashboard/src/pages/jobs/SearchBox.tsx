import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useMe } from '../../api/me';
import { ownersQuery } from '../../api/owners';
import { jobTypesQuery, statsQuery } from '../../api/queries';
import { Combobox } from '../../ui/Combobox';
import { Icon } from '../../ui/Icon';
import { useShortcuts } from '../../ui/shortcuts';
import type { Schema } from '../new/schema';
import type { Filters } from './filters';
import { payloadPaths } from './payloadPaths';
import { complete, parseQuery, suggestions, writeQuery, type Known } from './query';

interface Props {
  filters: Filters;
  tags: readonly string[]; // of the jobs that are shown
  onSearch: (filters: Filters) => void;
}

/** SearchBox shows all filters as a text, and changes them: by Enter, or by taking a suggestion. */
export function SearchBox({ filters, tags, onSearch }: Props) {
  const written = writeQuery(filters);
  const [text, setText] = useState(written);
  const input = useRef<HTMLInputElement>(null);
  const known = useKnown(text, tags);

  useEffect(() => setText((typed) => (writeQuery(parseQuery(typed)) === written ? typed : written)), [written]);
  useShortcuts([{ keys: 'f', does: 'Filter the jobs', run: () => input.current?.focus() }]);

  return (
    <div className="search-box" role="search" aria-label="Filter jobs">
      <Icon name="search" />
      <Combobox
        floating
        inputRef={input}
        type="search"
        className="input"
        label="Search jobs"
        placeholder={`type:INVOICE ${known['payload'] ? 'payload:orderId:A-17' : 'tag:order-*'} since:yesterday, an id, a key, a part of a tag or of an error…`}
        maxLength={2000}
        value={text}
        onChange={setText}
        options={suggestions(text, known)}
        onPick={(suggestion) => {
          const next = complete(text, suggestion);
          setText(next);
          if (suggestion.whole) {
            onSearch(parseQuery(next));
          }
        }}
        onEnter={() => onSearch(parseQuery(text))}
      />
    </div>
  );
}

/** useKnown returns the names that a search can suggest: of types, queues, error codes, tags, owners and members of payloads. */
function useKnown(text: string, tags: readonly string[]): Known {
  const { installation, sealing } = useMe();
  const stats = useQuery({ ...statsQuery, staleTime: 30_000 });
  const word = /(?:owner:)?"?([^\s":]*)$/i.exec(text)?.[1] ?? '';
  const owners = useQuery({ ...ownersQuery(word), enabled: installation && word !== '' });
  const types = useQuery({ ...jobTypesQuery, enabled: !sealing && /(^|\s)payload:\S*$/i.test(text) });
  const { type } = parseQuery(text).texts;
  const described = types.data?.jobTypes.filter(({ name }) => type === undefined || name === type) ?? [];
  return {
    ...(!sealing && { payload: described.flatMap(({ schema }) => (schema ? payloadPaths(schema as Schema) : [])).map((path) => `${path}:`) }),
    type: stats.data?.types.map(({ jobType }) => jobType) ?? [],
    queue: stats.data?.queues.map(({ queue }) => queue) ?? [],
    code: stats.data?.failures['30d'].errorCodes.flatMap(({ errorCode }) => errorCode ?? []) ?? [],
    tag: tags,
    owner: owners.data?.owners ?? [],
  };
}
