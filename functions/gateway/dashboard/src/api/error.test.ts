import { describe, expect, it } from 'vitest';
import { advice, ApiError, asApiError, retryAfter } from './error';

describe('an answer that is no success', () => {
  it('keeps code, message, trace id and places', () => {
    const error = new ApiError(400, {
      errorCode: 'API.INVALID_JOB_REQUEST',
      message: 'invalid job request: priority must be at most 9',
      traceId: '0af76519-16cd-43dd-8448-eb211c80319c',
      details: [{ path: 'priority', message: 'must be at most 9' }],
    });
    expect(error.code).toBe('API.INVALID_JOB_REQUEST');
    expect(error.message).toContain('priority');
    expect(error.traceId).toBe('0af76519-16cd-43dd-8448-eb211c80319c');
    expect(advice(error)).toContain('listed');
  });
  it('shows how long to wait after too many requests', () => {
    const after = (named: string | null) => retryAfter(new Response(null, named === null ? {} : { headers: { 'Retry-After': named } }));
    expect(advice(new ApiError(429, {}, after('7')))).toBe('Wait 7 s, and try again.');
    expect([after('Wed, 21 Oct 2026 07:28:00 GMT'), after(null)]).toEqual([1, 1]);
  });
  it('has a code and a message also without a body', () => {
    expect(new ApiError(502, {})).toMatchObject({ code: 'HTTP 502', message: 'the server answered 502' });
  });
  it('stands for anything that was thrown', () => {
    expect(asApiError(new TypeError('no')).message).toBe('no');
    expect(asApiError('no')).toMatchObject({ code: 'PAGE', message: 'no' });
  });
});
