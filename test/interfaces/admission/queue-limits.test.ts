// Limits of waiting requests, of one token and of all tokens.

import { describe, expect, test } from '@jest/globals';
import {
  DEFAULT_LIMITS,
  resolveAdmissionLimits,
  WORK_KINDS,
  type AdmissionOptions,
  type WorkKind,
} from '../../../src/interfaces/admission/admission-limits.js';
import type { ScheduledRequest } from '../../../src/interfaces/admission/scheduled-request.js';
import { AdmissionSchedule } from '../../../src/interfaces/admission/admission-schedule.js';

const KINDS = { read: { running: 1, runningPerToken: 1, queueMs: 1_000, cost: 1 } } as const;

function scheduled(options: AdmissionOptions) {
  const schedule = new AdmissionSchedule(resolveAdmissionLimits({ kinds: KINDS, ...options }));
  /** Each request has a connection of its own. */
  const enter = (token: string, now = 0, kind: WorkKind = 'read'): ScheduledRequest =>
    schedule.enter({ token, connection: {}, kind, bytes: 0 }, now);
  return { schedule, enter };
}

const states = (requests: readonly ScheduledRequest[]): readonly string[] => requests.map(({ state }) => state);

describe('A3: the queue is bounded', () => {
  test('at the limit of a token the next request is refused at once, and another token still waits', () => {
    const { schedule, enter } = scheduled({ queuedPerToken: 2 });
    const mine = [enter('one'), enter('one'), enter('one'), enter('one')];
    expect(states(mine)).toEqual(['running', 'queued', 'queued', 'refused']);
    expect(mine[3]?.refusal).toMatchObject({ cause: 'token' });
    expect(enter('two').state).toBe('queued');
    expect(schedule.waiting).toBe(3);
    // A request that leaves makes room for one.
    schedule.leave(mine[1]!, 1);
    expect([enter('one', 1).state, enter('one', 1).state]).toEqual(['queued', 'refused']);
  });

  test('at the limit of all tokens the next request is refused as overload, whatever its token', () => {
    const { schedule, enter } = scheduled({ queued: 3 });
    const all = ['one', 'two', 'three', 'four', 'five'].map((token) => enter(token));
    expect(states(all)).toEqual(['running', 'queued', 'queued', 'queued', 'refused']);
    expect(all[4]?.refusal).toMatchObject({ cause: 'service' });
    expect(schedule.counts).toMatchObject({ waiting: 3, refused: { service: 1, token: 0 } });
  });

  test('a refused request counts neither for its connection nor for its token', () => {
    const { schedule, enter } = scheduled({ queuedPerToken: 1, connectionsPerToken: 3 });
    const first = enter('one');
    enter('one');
    for (let n = 0; n < 10; n += 1) expect(enter('one').refusal).toMatchObject({ cause: 'token' });
    schedule.leave(first, 1);
    expect(schedule.next(1)?.state).toBe('running');
    expect(enter('one', 1).state).toBe('queued');
  });
});

test.each(WORK_KINDS)('an operator can set single limits of %s and keep the other defaults', (kind) => {
  const { kinds, ...rest } = resolveAdmissionLimits({ kinds: { [kind]: { queueMs: 7 } }, queued: 9 });
  const { kinds: defaults, ...others } = DEFAULT_LIMITS;
  expect(kinds).toEqual({ ...defaults, [kind]: { ...defaults[kind], queueMs: 7 } });
  expect(rest).toEqual({ ...others, queued: 9 });
});
