import { describe, expect, it } from 'vitest';
import { parseSearch, stringifySearch } from '../../app/paths';
import { isEmpty, isSpan, readFilters, resolveSince, toggleStatus, toQuery, withText, writeFilters } from './filters';

const now = new Date('2026-11-23T08:00:00Z');

describe('filters in the address', () => {
  it('survive being written and read', () => {
    const search = '?status=RUNNING&status=FAILED&type=EMAIL&tag=a%26b&since=24h&until=2026-11-23T07%3A00%3A00Z&endedSince=1h&endedUntil=2026-11-23T07%3A30%3A00Z';
    expect(stringifySearch(writeFilters(readFilters(parseSearch(search))))).toBe(search);
  });
  it('take one state or several', () => {
    expect(readFilters({ status: 'FAILED' }).status).toEqual(['FAILED']);
    expect(readFilters({ status: ['FAILED', 'RUNNING', 'FAILED'] }).status).toEqual(['RUNNING', 'FAILED']);
  });
  it('take jobs without an error code, and then none with one', () => {
    const filters = readFilters({ noErrorCode: 'true', errorCode: 'X', after: 'a' });
    expect(writeFilters(filters)).toEqual({ noErrorCode: 'true', after: 'a' });
    expect(toQuery(filters, now)).toEqual({ noErrorCode: true, after: 'a' });
    expect(writeFilters(withText(filters, 'errorCode', 'X'))).toEqual({ errorCode: 'X', after: 'a' });
  });
  it('ignore what is no filter, and keep values that no job can have for the API to refuse', () => {
    expect(isEmpty(readFilters({ status: '', colour: 'red', tag: '' }))).toBe(true);
    const filters = readFilters({ status: ['DONE', 'FAILED'], since: 'soon', until: '24h' });
    expect(toQuery(filters, now)).toEqual({ status: ['FAILED', 'DONE'], since: 'soon', until: '24h' });
  });
});

describe('filters in a request', () => {
  it('have instants only', () => {
    expect(toQuery(readFilters({ since: '90m', until: '2026-11-23T09:00:00+02:00' }), now)).toEqual({
      since: '2026-11-23T06:30:00.000Z',
      until: '2026-11-23T07:00:00.000Z',
    });
  });
  it('tell the end from the acceptance', () => {
    expect(toQuery(readFilters({ endedSince: '1m', endedUntil: '2026-11-23T08:00:00Z' }), now)).toEqual({
      endedSince: '2026-11-23T07:59:00.000Z',
      endedUntil: '2026-11-23T08:00:00.000Z',
    });
    expect(toQuery(readFilters({ endedSince: 'soon', endedUntil: '1h' }), now)).toEqual({ endedSince: 'soon', endedUntil: '1h' });
  });
  it('are empty where there are none', () => expect(toQuery(readFilters({}), now)).toEqual({}));
  it('tell a span from an instant', () => {
    expect(['1d', '90m', '2026-11-23T07:45:00Z', ''].map(isSpan)).toEqual([true, true, false, false]);
  });
  it('count spans in minutes, hours and days', () => {
    expect(resolveSince('15m', now)).toBe('2026-11-23T07:45:00.000Z');
    expect(resolveSince('7d', now)).toBe('2026-11-16T08:00:00.000Z');
    expect(resolveSince('2026-11-23T07:45:00Z', now)).toBe('2026-11-23T07:45:00Z');
  });
});

describe('a change of filters', () => {
  it('adds and removes a state, and keeps their order', () => {
    const one = toggleStatus(readFilters({ status: 'FAILED' }), 'RUNNING');
    expect(one.status).toEqual(['RUNNING', 'FAILED']);
    expect(toggleStatus(one, 'FAILED').status).toEqual(['RUNNING']);
  });
  it('sets a text, and removes it where it is empty', () => {
    const tagged = withText(readFilters({}), 'tag', ' billing ');
    expect(tagged.texts).toEqual({ tag: 'billing' });
    expect(withText(tagged, 'tag', ' ').texts).toEqual({});
  });
});

describe('a named day', () => {
  const midnight = (daysAgo: number) => new Date(2026, 10, 23 - daysAgo).toISOString();
  const noon = new Date(2026, 10, 23, 12);
  it('begins and ends at midnight', () => {
    expect(toQuery(readFilters({ since: 'yesterday' }), noon)).toEqual({ since: midnight(1), until: midnight(0) });
    expect(toQuery(readFilters({ endedSince: 'today' }), noon)).toEqual({ endedSince: midnight(0) });
  });
  it('ends earlier if the filters say so', () => {
    const until = new Date(2026, 10, 22, 3).toISOString();
    expect(toQuery(readFilters({ since: 'yesterday', until }), noon)).toEqual({ since: midnight(1), until });
  });
});
