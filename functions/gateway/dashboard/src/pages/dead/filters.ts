import { resolveSince } from '../jobs/filters';

export interface DeadFilters {
  type: string;
  errorCode: string; // NO_CODE: those without one
  ownerId: string;
  seen: string; // a span that ends now such as "1h", or empty
}

/** NO_CODE stands for failures without a code; no code has a space. */
export const NO_CODE = 'no error code';

export const SEEN = [
  { value: '1h', label: 'Failed in the last hour' },
  { value: '24h', label: 'Failed in the last day' },
  { value: '7d', label: 'Failed in the last week' },
] as const;

type Search = Record<string, unknown>;

/** readDeadFilters reads the filters from the address, without unknown names. */
export function readDeadFilters(search: Search): DeadFilters {
  const text = (name: string) => (typeof search[name] === 'string' ? search[name] : '');
  return {
    type: text('type'),
    errorCode: text('noErrorCode') === 'true' ? NO_CODE : text('errorCode'),
    ownerId: text('ownerId'),
    seen: SEEN.some(({ value }) => value === text('seen')) ? text('seen') : '',
  };
}

/** writeDeadFilters is the inverse of readDeadFilters. */
export function writeDeadFilters({ type, errorCode, ownerId, seen }: DeadFilters): Record<string, string> {
  return { ...(type && { type }), ...codeOf(errorCode, 'true'), ...(ownerId && { ownerId }), ...(seen && { seen }) };
}

/** toDeadQuery converts the filters for the API. */
export function toDeadQuery({ type, errorCode, ownerId, seen }: DeadFilters, now: Date) {
  return { ...(type && { type }), ...codeOf(errorCode, true as const), ...(ownerId && { ownerId }), ...(seen && { since: resolveSince(seen, now) }) };
}

function codeOf<T>(errorCode: string, yes: T): { errorCode?: string; noErrorCode?: T } {
  return errorCode === NO_CODE ? { noErrorCode: yes } : errorCode === '' ? {} : { errorCode };
}
