import { expect, it } from 'vitest';
import { eventOf, NO_OPTIONS, requestOf } from './request';

it('leaves out what is empty', () => {
  expect(requestOf('A', { x: 1 }, NO_OPTIONS)).toEqual({ jobType: 'A', payload: { x: 1 } });
});
it('has numbers as numbers, seconds as milliseconds and tags as a list', () => {
  const options = { ...NO_OPTIONS, priority: '5', delaySeconds: '1.5', maxRetryCount: '0', tags: 'a, b,,' };
  expect(requestOf('A', null, options)).toEqual({ jobType: 'A', payload: null, priority: 5, delayMs: 1500, maxRetryCount: 0, tags: ['a', 'b'] });
});
it('has a policy only with its key', () => {
  const members = { uniqueFor: '24h', singletonElse: 'drop', throttleSeconds: '2', debounceSeconds: '0.5' };
  expect(requestOf('A', 1, { ...NO_OPTIONS, ...members })).toEqual({ jobType: 'A', payload: 1 });
  const keys = { uniqueKey: 'u', singletonKey: 's', throttleKey: 't', debounceKey: 'd' };
  expect(requestOf('A', 1, { ...NO_OPTIONS, ...members, ...keys })).toMatchObject({
    unique: { key: 'u', for: '24h' }, singleton: { key: 's', else: 'drop' }, throttle: { key: 't', perMs: 2000 }, debounce: { key: 'd', delayMs: 500 },
  });
  expect(requestOf('A', 1, { ...NO_OPTIONS, ...keys })).toMatchObject({ unique: { key: 'u' }, throttle: { key: 't' } });
});
it('stands for a CloudEvent that carries it', () => {
  const text = eventOf(requestOf('A', {}, NO_OPTIONS), 'http://localhost:8080', true);
  expect(text).toContain('"type": "io.jobweaver.job.submit.v1"');
  expect(text).toContain('http://localhost:8080/events');
});
