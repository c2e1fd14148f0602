import { expect, it } from 'vitest';
import { isolated } from './isolated';

it('isolates the strings whose letters run from right to left', () => {
  const text = '{\n  "ملاحظة": "هذا \\" نص",\n  "n": 1\n}';
  const pieces = isolated(text);
  expect(pieces.map((piece) => piece.text).join('')).toBe(text);
  expect(pieces.filter((piece) => piece.isolate).map((piece) => piece.text)).toEqual(['"ملاحظة"', '"هذا \\" نص"']);
});
it('leaves other text in one piece', () => {
  expect(isolated('{"größe": "日本"}')).toEqual([{ text: '{"größe": "日本"}', isolate: false }]);
  expect(isolated('')).toEqual([{ text: '', isolate: false }]);
});
