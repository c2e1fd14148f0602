import type { Command } from './commands';
import { paths } from './paths';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TRACE = /^[0-9a-f]{32}$/;

/** searches returns the searches for jobs that a typed text may mean. */
export function searches(text: string, go: (path: string) => void): Command[] {
  const wanted = text.trim();
  const lower = wanted.toLowerCase();
  if (UUID.test(lower)) {
    return [
      { name: `Open the job ${lower}`, icon: 'jobs', run: () => go(paths.job(lower)) },
      { name: `Jobs with the trace id ${lower}`, icon: 'search', run: () => go(paths.jobs({ traceId: lower })) },
    ];
  }
  if (TRACE.test(lower)) {
    const id = lower.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    return [{ name: `Jobs with the trace id ${id}`, icon: 'search', run: () => go(paths.jobs({ traceId: id })) }];
  }
  if (wanted.length < 2) {
    return [];
  }
  return [{ name: `Search jobs for “${wanted}”`, icon: 'search', run: () => go(paths.jobs({ q: wanted })) }];
}
