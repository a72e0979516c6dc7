// The check lists: one order for live decisions and for `policy explain`.

import { describe, expect, test } from '@jest/globals';
import { CHECK_PHASES, phaseAfter, VALIDATION_CHECKS } from '../../../src/core/step/check-phases.js';
import { PHASES } from '../../../src/core/contract/run/phase.js';
import {
  LANE_CHECKS,
  PRIVILEGED_CHECKS,
  AGENT_START_CHECKS,
  REQUEST_CHECKS,
  findFirstDenial,
} from '../../../src/core/policy/authorize-run.js';
import { RULE_IDS, indexOfCheck, type OrderedCheck } from '../../../src/core/policy/verdict.js';
import { APPROVAL_CHECK, STEP_CHECKS } from '../../../src/core/step/authorization.js';

const ALLOWING = new Set(['orchestrator.pinned', 'agent.lane_granted', 'operator.not_limited', 'lane.granted']);

describe('the lists of checks', () => {
  test('S4-31 S4-32 S4-33 S4-34 S4-35: every denying rule belongs to a check, in the documented order', () => {
    const positions = RULE_IDS.filter((rule) => !ALLOWING.has(rule)).map((rule) => indexOfCheck(REQUEST_CHECKS, rule));
    expect(positions).not.toContain(-1);
    // The rules are grouped by check; within the groups of reads, writes and labels the docs use an order of their own.
    expect([...new Set(positions)].filter((n) => n < LANE_CHECKS.length)).toEqual(LANE_CHECKS.map((_, n) => n));
    expect(new Set(positions).size).toBe(REQUEST_CHECKS.length - 1);
  });

  test('S4-35: lane checks come first, then the request, then the overlay', () => {
    const claims = REQUEST_CHECKS.map(({ claim }) => claim);
    expect(claims.slice(0, -1)).toEqual([...LANE_CHECKS, ...PRIVILEGED_CHECKS].map(({ claim }) => claim));
    expect(indexOfCheck(REQUEST_CHECKS, 'overlay.any')).toBe(REQUEST_CHECKS.length - 1);
    expect(indexOfCheck(AGENT_START_CHECKS, 'budget.steps')).toBe(0);
  });

  test('D7: the approval is the last check of a step', () => {
    expect(STEP_CHECKS.at(-1)).toBe(APPROVAL_CHECK);
  });

  test('S0-12: the claims of the checking phases follow the phases', () => {
    expect([...new Set(VALIDATION_CHECKS.map(({ phase }) => phase))]).toEqual(CHECK_PHASES);
    for (const phase of CHECK_PHASES) expect(PHASES.indexOf(phaseAfter(phase))).toBe(PHASES.indexOf(phase) + 1);
  });
});

describe('findFirstDenial', () => {
  const check = (claim: string, limit: number): OrderedCheck<number, string> => ({
    claim,
    rules: [`${claim}.*`],
    findDenial: (value) => (value > limit ? `${claim}.exceeded` : null),
  });

  test('returns the first denial of the list', () => {
    expect(findFirstDenial([check('a', 5), check('b', 1)], 3)).toBe('b.exceeded');
    expect(findFirstDenial([check('a', 5), check('b', 1)], 9)).toBe('a.exceeded');
    expect(findFirstDenial([check('a', 5), check('b', 1)], 0)).toBeNull();
  });
});

describe('indexOfCheck', () => {
  const checks = [
    { claim: 'any', rules: ['sandbox.*'] },
    { claim: 'exact', rules: ['sandbox.no_facts', 'quota.*'] },
  ];

  test('a check that names the rule precedes one that names its beginning', () => {
    expect(indexOfCheck(checks, 'sandbox.no_facts')).toBe(1);
    expect(indexOfCheck(checks, 'sandbox.depth')).toBe(0);
    expect(indexOfCheck(checks, 'quota.bytes')).toBe(1);
    expect(indexOfCheck(checks, 'other')).toBe(-1);
    expect(indexOfCheck(checks, 'sandbox.no_factor')).toBe(0);
    expect(indexOfCheck([{ claim: 'exact', rules: ['role.unknown'] }], 'role.unknowable')).toBe(-1);
  });
});
