import { stringify } from '../../api/json';
import { curl } from '../job/curl';

/** Options are the members of a JobRequest beside its type and payload, as texts of their inputs; empty means the default. */
export interface Options {
  queue: string;
  priority: string;
  delaySeconds: string;
  maxRetryCount: string;
  tags: string;
  idempotencyKey: string;
  orderingKey: string;
  callbackUrl: string;
  uniqueKey: string;
  uniqueFor: string;
  singletonKey: string;
  singletonElse: string;
  throttleKey: string;
  throttleSeconds: string;
  debounceKey: string;
  debounceSeconds: string;
}

export const NO_OPTIONS: Options = {
  queue: '',
  priority: '',
  delaySeconds: '',
  maxRetryCount: '',
  tags: '',
  idempotencyKey: '',
  orderingKey: '',
  callbackUrl: '',
  uniqueKey: '',
  uniqueFor: '',
  singletonKey: '',
  singletonElse: '',
  throttleKey: '',
  throttleSeconds: '',
  debounceKey: '',
  debounceSeconds: '',
};

export interface Request {
  jobType: string;
  payload: unknown;
  [option: string]: unknown;
}

/** requestOf returns the JobRequest of the form. */
export function requestOf(jobType: string, payload: unknown, options: Options): Request {
  const tags = options.tags.split(',').map((tag) => tag.trim()).filter(Boolean);
  return {
    jobType,
    payload,
    ...(options.queue && { queue: options.queue }),
    ...(options.priority && { priority: Number(options.priority) }),
    ...(options.delaySeconds && { delayMs: Math.round(Number(options.delaySeconds) * 1000) }),
    ...(options.maxRetryCount && { maxRetryCount: Number(options.maxRetryCount) }),
    ...(tags.length > 0 && { tags }),
    ...(options.idempotencyKey && { idempotencyKey: options.idempotencyKey }),
    ...(options.orderingKey && { orderingKey: options.orderingKey }),
    ...(options.callbackUrl && { callbackUrl: options.callbackUrl }),
    ...(options.uniqueKey && { unique: { key: options.uniqueKey, ...(options.uniqueFor && { for: options.uniqueFor }) } }),
    ...(options.singletonKey && { singleton: { key: options.singletonKey, ...(options.singletonElse && { else: options.singletonElse }) } }),
    ...(options.throttleKey && { throttle: { key: options.throttleKey, ...millis('perMs', options.throttleSeconds) } }),
    ...(options.debounceKey && { debounce: { key: options.debounceKey, ...millis('delayMs', options.debounceSeconds) } }),
  };
}

/** millis returns a member in milliseconds; none for an empty text. */
function millis(name: string, seconds: string): Record<string, number> {
  return seconds === '' ? {} : { [name]: Math.round(Number(seconds) * 1000) };
}

/** curlOf returns a shell command that submits the request. */
export function curlOf(request: Request, origin: string, withKey: boolean): string {
  return curl(`${origin}/api/jobs`, stringify(request, 2), withKey);
}

/** eventOf returns a shell command that submits the same job as a CloudEvent. */
export function eventOf(request: Request, origin: string, withKey: boolean): string {
  const event = {
    specversion: '1.0',
    id: 'choose-one-per-job',
    source: '/dashboard',
    type: 'io.jobweaver.job.submit.v1',
    datacontenttype: 'application/json',
    data: request,
  };
  return curl(`${origin}/events`, stringify(event, 2), withKey, 'application/cloudevents+json');
}
