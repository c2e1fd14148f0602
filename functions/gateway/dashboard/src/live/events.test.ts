import { expect, it } from 'vitest';
import { eventParser, type StreamEvent } from './events';

function read(...pieces: string[]): StreamEvent[] {
  const events: StreamEvent[] = [];
  const parse = eventParser((event) => events.push(event));
  pieces.forEach(parse);
  return events;
}

it('reads events with their ids', () => {
  expect(read('id: 7\nevent: job\ndata: {"jobId":"a"}\n\nid: 8\nevent: reload\ndata: {"reason":"x"}\n\n')).toEqual([
    { id: '7', name: 'job', data: { jobId: 'a' } },
    { id: '8', name: 'reload', data: { reason: 'x' } },
  ]);
});
it('reads an event that comes in pieces, once it is whole', () => {
  expect(read('id: 7\nev', 'ent: job\nda', 'ta: {"a":', '1}\n')).toEqual([]);
  expect(read('id: 7\nev', 'ent: job\nda', 'ta: {"a":', '1}\n', '\n')).toEqual([{ id: '7', name: 'job', data: { a: 1 } }]);
});
it('passes comments and blank lines by', () => {
  expect(read(': still here\n\n\n: again\n\n')).toEqual([]);
});
it('takes lines that end as HTTP lines do, and values with colons', () => {
  expect(read('event: log\r\ndata: {"at":"08:00"}\r\n\r\n')).toEqual([{ id: '', name: 'log', data: { at: '08:00' } }]);
});
