import { describe, expect, it } from 'vitest';
import { differences, wordDifferences } from './differences';

const marked = (a: string, b: string) =>
  wordDifferences(a, b).map((parts) => parts.map(({ text, differs }) => (differs ? `[${text}]` : text)).join(''));

describe('wordDifferences', () => {
  it('marks the words that only one text has', () => {
    expect(marked('timeout after 30 s calling /v2/contacts', 'timeout after 60 s calling /v2/orders')).toEqual([
      'timeout after [30] s calling /v2/[contacts]',
      'timeout after [60] s calling /v2/[orders]',
    ]);
  });
  it('marks the space between two marked words', () => {
    expect(marked('not found here', 'gone')).toEqual(['[not found here]', '[gone]']);
  });
  it('marks nothing in equal texts, and all of a text beside an empty one', () => {
    expect(marked('the same', 'the same')).toEqual(['the same', 'the same']);
    expect(marked('', 'only here')).toEqual(['', '[only here]']);
  });
  it('keeps words of other scripts whole', () => {
    expect(marked('Größe überschritten', 'Größe erreicht')).toEqual(['Größe [überschritten]', 'Größe [erreicht]']);
  });
});

describe('differences', () => {
  it('finds lines that moved in between', () => {
    expect(differences(['a', 'b', 'd'], ['a', 'c', 'b', 'd'])).toEqual([
      [false, false, false],
      [false, true, false, false],
    ]);
  });
  it('compares texts of ten thousand words by their ends only', () => {
    const long = (word: string) => ['same', ...Array.from({ length: 10_000 }, (_, i) => word + i), 'end'];
    const [a] = differences(long('x'), long('y'));
    expect([a[0], a.at(-1), a.filter(Boolean).length]).toEqual([false, false, 10_000]);
  });
});
