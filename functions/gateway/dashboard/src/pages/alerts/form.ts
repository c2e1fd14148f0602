import { plural } from '../../format/number';
import type { Alert, AlertRequest } from './queries';

export type Kind = 'slack' | 'webhook' | 'email';

/** Draft is an alert in its form, as texts. */
export interface Draft {
  name: string;
  jobType: string;
  queue: string;
  errorCode: string;
  failures: string;
  percent: string; // empty: however many jobs ended
  windowMinutes: string;
  quietMinutes: string;
  kind: Kind;
  to: string; // a URL, or addresses with commas between them
  paused: boolean;
}

export function draft(alert?: Alert): Draft {
  return {
    name: alert?.name ?? '',
    jobType: alert?.jobType ?? '',
    queue: alert?.queue ?? '',
    errorCode: alert?.errorCode ?? '',
    failures: String(alert?.failures ?? 5),
    percent: alert?.percent === null || alert === undefined ? '' : String(alert.percent),
    windowMinutes: String(alert?.windowMinutes ?? 5),
    quietMinutes: String(alert?.quietMinutes ?? 60),
    kind: kindOf(alert?.to ?? null),
    to: destination(alert?.to ?? null),
    paused: alert?.paused ?? false,
  };
}

function kindOf(to: Alert['to']): Kind {
  return to?.email ? 'email' : to?.webhook === undefined ? 'slack' : 'webhook';
}

/** destination returns where notices go, as a text; empty: the gateway cannot show it. */
export function destination(to: Alert['to']): string {
  return to?.email?.join(', ') ?? to?.slack ?? to?.webhook ?? '';
}

export const KINDS: Record<Kind, string> = { slack: 'Slack', webhook: 'Webhook', email: 'E-mail' };

/** toRequest returns the request for the API, which checks its numbers. */
export function toRequest(from: Draft): AlertRequest {
  const text = (value: string) => value.trim() || null;
  const to = from.to.trim();
  return {
    name: from.name.trim(), jobType: text(from.jobType), queue: text(from.queue), errorCode: text(from.errorCode),
    failures: Number(from.failures), percent: from.percent.trim() === '' ? null : Number(from.percent),
    windowMinutes: Number(from.windowMinutes), quietMinutes: Number(from.quietMinutes), paused: from.paused,
    to: from.kind === 'email' ? { email: to.split(',').map((part) => part.trim()).filter((part) => part !== '') } : { [from.kind]: to },
  };
}

/** threshold describes when an alert fires: "10 failures and 20 % within 5 minutes". */
export function threshold({ failures, percent, windowMinutes }: Pick<Alert, 'failures' | 'percent' | 'windowMinutes'>): string {
  const share = percent === null ? '' : ` and ${percent} %`;
  return `${plural(failures, 'failure')}${share} within ${plural(windowMinutes, 'minute')}`;
}

/** subject names whose failures an alert counts: "CHARGE, queue pay, code CARD.DECLINED". */
export function subject({ jobType, queue, errorCode }: Pick<Alert, 'jobType' | 'queue' | 'errorCode'>): string {
  const parts = [jobType, queue === null ? null : `queue ${queue}`, errorCode === null ? null : `code ${errorCode}`];
  return parts.filter((part) => part !== null).join(', ') || 'all jobs';
}
