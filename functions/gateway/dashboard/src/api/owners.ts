import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answer, api } from './client';
import { ofAllOwners } from './session';

const SHOWN = 20;

/** ownersQuery finds owners by a part of their names. Only an admin of the installation may ask, also while it acts for one. */
export const ownersQuery = (text: string, limit = SHOWN) =>
  queryOptions({
    queryKey: ['owners', text, limit],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/owners', { params: { query: { limit, ...(text !== '' && { q: text }) } }, headers: ofAllOwners, signal })),
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  });
