import { expect, it } from 'vitest';
import { matching, type Command } from './commands';
import { idOf, nextId, searches } from './searches';

function went(text: string): string[] {
  const to: string[] = [];
  searches(text, (path) => to.push(path)).forEach((command) => command.run());
  return to;
}

const id = '01936f3e-5f3e-7cc0-8000-0123456789ab';

it('takes a UUID and a W3C trace id for an id', () => {
  expect(idOf(` ${id.toUpperCase()} `)).toBe(id);
  expect(idOf(id.replaceAll('-', ''))).toBe(id);
  expect(idOf(id.slice(1))).toBeNull();
  expect(went(id)).toEqual([`/jobs?traceId=${id}`]);
});
it('knows the id after an id', () => {
  expect(nextId(id)).toBe('01936f3e-5f3e-7cc0-8000-0123456789ac');
  expect(nextId('00000000-0000-0000-ffff-ffffffffffff')).toBe('00000000-0000-0001-0000-000000000000');
});
it('searches jobs for other text, which may have qualifiers', () => {
  expect(went('order 17')).toEqual(['/jobs?q=order+17']);
  expect(went('owner:acme status:failed since:yesterday')).toEqual(['/jobs?status=FAILED&ownerId=acme&since=yesterday']);
  expect(went('x')).toEqual([]);
});
it('finds commands by their words, in any order', () => {
  const command = (name: string): Command => ({ name, icon: 'jobs', run: () => undefined });
  const all = [command('Go to Dead letters'), command('Go to Jobs')];
  expect(matching(all, 'letters go').map(({ name }) => name)).toEqual(['Go to Dead letters']);
  expect(matching(all, '')).toHaveLength(2);
});
