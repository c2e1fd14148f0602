import { expect, it } from 'vitest';
import { matching, type Command } from './commands';
import { searches } from './searches';

function went(text: string): string[] {
  const to: string[] = [];
  searches(text, (path) => to.push(path)).forEach((command) => command.run());
  return to;
}

it('takes a UUID for a job or a trace', () => {
  const id = '01936f3e-5f3e-7cc0-8000-0123456789ab';
  expect(went(` ${id.toUpperCase()} `)).toEqual([`/jobs/${id}`, `/jobs?traceId=${id}`]);
});
it('takes 32 hexadecimal digits for a W3C trace id', () => {
  expect(went('0af7651916cd43dd8448eb211c80319c')).toEqual(['/jobs?traceId=0af76519-16cd-43dd-8448-eb211c80319c']);
});
it('searches jobs for other text', () => {
  expect(went('order 17')).toEqual(['/jobs?q=order+17']);
  expect(went('x')).toEqual([]);
});
it('finds commands by their words, in any order', () => {
  const command = (name: string): Command => ({ name, icon: 'jobs', run: () => undefined });
  const all = [command('Go to Dead letters'), command('Go to Jobs')];
  expect(matching(all, 'letters go').map(({ name }) => name)).toEqual(['Go to Dead letters']);
  expect(matching(all, '')).toHaveLength(2);
});
