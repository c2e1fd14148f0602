import { afterEach, describe, expect, it } from 'vitest';
import { setTimes } from '../../format/times';
import { readFilters, writeFilters } from './filters';
import { complete, parseQuery, suggestions, writeQuery } from './query';

const read = (text: string) => writeFilters(parseQuery(text));

describe('a typed search', () => {
  afterEach(() => setTimes('relative'));

  it('has qualifiers, and other words as a text', () => {
    expect(read('type:INVOICE  card   declined queue:reports')).toEqual({ type: 'INVOICE', queue: 'reports', q: 'card declined' });
    expect(read('Status:failed,running status:PENDING')).toEqual({ status: ['PENDING', 'RUNNING', 'FAILED'] });
    expect(read('tag:order-* owner:"Müller & \\"Söhne\\"" code:none')).toEqual({ tag: 'order-*', ownerId: 'Müller & "Söhne"', noErrorCode: 'true' });
    expect(read('code:A.B')).toEqual({ errorCode: 'A.B' });
  });
  it('takes a path and a value of the payload', () => {
    expect(read('payload:order.id:A-17 type:X')).toEqual({ payload: 'order.id:A-17', type: 'X' });
    expect(read('payload:note:"two \\"words\\"" y')).toEqual({ payload: 'note:two "words"', q: 'y' });
    expect(read('payload:"note:two words" PAYLOAD:[\'a\']:5"')).toEqual({ payload: '[\'a\']:5"' });
  });
  it('takes a colon that follows no qualifier, and a text in quotes, as text', () => {
    expect(read('dial: refused')).toEqual({ q: 'dial: refused' });
    expect(read('"type:X is not known"')).toEqual({ q: 'type:X is not known' });
    expect(read('type: x')).toEqual({ q: 'x' });
    expect(read('')).toEqual({});
  });
  it('keeps spans and named days, and takes times of the shown zone', () => {
    setTimes('utc');
    expect(read('since:Yesterday ended-since:24h')).toEqual({ since: 'yesterday', endedSince: '24h' });
    expect(read('since:2026-11-27 until:2026-11-27T10:30')).toEqual({ since: '2026-11-27T00:00:00.000Z', until: '2026-11-27T10:30:00.000Z' });
    expect(read('since:soon until:2026-11-27T10:30:00+02:00')).toEqual({ since: 'soon', until: '2026-11-27T10:30:00+02:00' });
  });
  it('is written as it is read', () => {
    setTimes('utc');
    for (const search of [
      { status: ['RUNNING', 'FAILED'], type: 'EMAIL', tag: 'a b', q: 'card declined', ownerId: 'a"b\\c', since: '24h' },
      { payload: 'a.b[0]:x y', q: 'z' }, { payload: '[\'a "b"\']:c:"d"' }, { payload: 'a:5"' },
      { q: 'type:X' }, { q: '"in quotes"' }, { q: 'a  b' }, { q: '\\ "' }, { noErrorCode: 'true', after: 'a', batchId: 'b', fanOutId: 'c' },
      { since: '2026-11-27T00:00:00.000Z', endedUntil: '2026-11-27T10:30:00.000Z', endedSince: 'yesterday', until: 'soon' },
      { idempotencyKey: 'k', orderingKey: 'none', traceId: 't', errorCode: 'X', queue: 'q' }, {},
    ]) {
      const text = writeQuery(readFilters(search));
      expect(read(text), text).toEqual(search);
    }
  });
});

describe('suggestions', () => {
  const known = { type: ['INVOICE', 'EMAIL'], owner: ['acme', 'Müller & Söhne'], code: ['CARD.DECLINED'] };
  const names = (text: string) => suggestions(text, known).map(({ name }) => name);

  it('name the qualifiers at first', () => {
    expect(names('')).toContain('type:');
    expect(names('type:EMAIL ')).toContain('queue:');
    expect(names('sta')).toEqual(['status:']);
  });
  it('complete a value, also of a word without a qualifier', () => {
    expect(names('type:in')).toEqual(['type:INVOICE']);
    expect(names('type:INVOICE')).toEqual([]);
    expect(names('decl')).toEqual(['code:CARD.DECLINED']);
    expect(names('x since:')).toContain('since:yesterday');
    expect(names('status:failed,ru')).toEqual(['status:failed,running']);
    expect(names('owner:"müller &')).toEqual(['owner:"Müller & Söhne"']);
  });
  it('name paths of payloads, behind which a value is typed', () => {
    const known = { payload: ['order.id:', 'vip:'] };
    expect(suggestions('x payload:or', known)).toEqual([{ name: 'payload:order.id:', hint: '', whole: false }]);
    expect(suggestions('payload:order.id:', known)).toEqual([]);
    expect(complete('x payload:or', suggestions('payload:or', known)[0]!)).toBe('x payload:order.id:');
    expect(suggestions('pay', known).map(({ name }) => name)).toEqual(['payload:']);
    expect(suggestions('pay', {})).toEqual([]);
  });
  it('replace the part at the end', () => {
    const first = (text: string) => complete(text, suggestions(text, known)[0]!);
    expect(first('a type:in')).toBe('a type:INVOICE ');
    expect(first('a sta')).toBe('a status:');
    expect(first('owner:"müller &')).toBe('owner:"Müller & Söhne" ');
  });
});
