import { describe, expect, test } from '@jest/globals';
import {
  agentTrace,
  formatTraceparent,
  isInRatio,
  parseTraceCarrier,
  spanIdOf,
  toTraceCarrier,
  traceIdOf,
} from '../../../src/core/contract/trace-context.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('a W3C trace context', () => {
  test('is read and written without a change', () => {
    const carrier = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1', baggage: 'b=2' };
    const point = parseTraceCarrier(carrier);
    expect(point).toMatchObject({ traceId: TRACE, spanId: SPAN, sampled: true, remote: true });
    expect(point === null ? null : toTraceCarrier(point)).toEqual(carrier);
  });

  test('of a later version is read as far as version 00 goes', () => {
    const point = parseTraceCarrier({ traceparent: `cc-${TRACE}-${SPAN}-00-what-comes-later` });
    expect(point).toMatchObject({ traceId: TRACE, sampled: false });
    expect(point === null ? null : formatTraceparent(point)).toBe(`00-${TRACE}-${SPAN}-00`);
  });

  test.each([
    '',
    'x'.repeat(10_000),
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
  ])('is ignored if it is invalid: %j', (traceparent) => {
    expect(parseTraceCarrier({ traceparent })).toBeNull();
    expect(agentTrace(traceparent)).toBeUndefined();
  });

  test('loses a state or baggage that no header can hold', () => {
    const traceparent = `00-${TRACE}-${SPAN}-01`;
    const point = parseTraceCarrier({ traceparent, tracestate: 'a\r\nb: c', baggage: 'x'.repeat(8_193) });
    expect(point === null ? null : toTraceCarrier(point)).toEqual({ traceparent });
  });

  test('of an agent is its traceparent alone, written anew', () => {
    expect(agentTrace(`01-${TRACE}-${SPAN}-03-secret`)).toEqual({ trace: { traceparent: `00-${TRACE}-${SPAN}-01` } });
    for (const value of [undefined, 7, null, { toString: () => `00-${TRACE}-${SPAN}-01` }]) {
      expect(agentTrace(value)).toBeUndefined();
    }
  });
});

describe('the trace of a tree', () => {
  test('follows from its id, and differs for each tree and run', () => {
    expect(traceIdOf('run_a')).toBe(traceIdOf('run_a'));
    expect(traceIdOf('run_a')).toMatch(/^[\da-f]{32}$/);
    expect(spanIdOf('run_a.1')).toMatch(/^[\da-f]{16}$/);
    expect(new Set(['run_a', 'run_b', 'run_a.1'].map(traceIdOf)).size).toBe(3);
  });

  test('is in the share by its id: all of them at 1, none at 0, about half at 0.5', () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => traceIdOf(`run_${index}`));
    const share = (ratio: number): number => ids.filter((id) => isInRatio(id, ratio)).length;
    expect([share(0), share(1)]).toEqual([0, 1_000]);
    expect(share(0.5)).toBeGreaterThan(400);
    expect(share(0.5)).toBeLessThan(600);
  });
});
