import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { OUTCOMES, type Outcome } from '../../../src/core/contract/run/phase.js';
import { type Exposure, type StepResponse } from '../../../src/core/contract/run/response.js';
import { buildResponse } from '../../../src/core/step/concluded-step.js';
import {
  countResponse,
  finalResponseOf,
  decideNextTurn,
  INITIAL_COUNTS,
  type LoopLimits,
} from '../../../src/features/models/loop-state.js';

const LIMITS: LoopLimits = { maxSteps: 50, maxDenials: 10, maxInvalid: 5, maxTokens: null };

const answered = (outcome: Outcome, exposure: Exposure = 'detailed', action = 'THINK'): StepResponse => {
  const ok = outcome === 'SUCCESS';
  const error = ok ? null : ({ error_code: 'POLICY_VIOLATION', message: 'no' } as const);
  return buildResponse({ proposal_id: null, action, outcome, result: ok ? { response: 'x' } : null, error }, exposure);
};
const after = (outcomes: readonly Outcome[], exposure: Exposure = 'detailed') =>
  outcomes.reduce((counts, outcome) => countResponse(counts, answered(outcome, exposure), 7), INITIAL_COUNTS);

describe('a loop', () => {
  test.each([
    ['stops at the last step', { maxSteps: 3 }, ['SUCCESS', 'SUCCESS', 'SUCCESS'], 'max_steps'],
    ['does not stop one step earlier', { maxSteps: 3 }, ['SUCCESS', 'SUCCESS'], 'ask'],
    ['stops at denials that are not consecutive', { maxDenials: 2 }, ['DENIED', 'SUCCESS', 'DENIED'], 'max_denials'],
    [
      'stops at consecutive invalid proposals',
      { maxInvalid: 2 },
      ['VALIDATION_ERROR', 'VALIDATION_ERROR'],
      'max_invalid',
    ],
    [
      'does not stop at invalid proposals that are not consecutive',
      { maxInvalid: 2 },
      ['VALIDATION_ERROR', 'SUCCESS', 'VALIDATION_ERROR'],
      'ask',
    ],
    [
      'counts a failure as neither denied nor invalid',
      { maxInvalid: 1, maxDenials: 1 },
      ['EXECUTION_ERROR', 'EXECUTION_ERROR'],
      'ask',
    ],
    ['stops at the token limit', { maxTokens: 14 }, ['SUCCESS', 'SUCCESS'], 'max_tokens'],
    ['does not stop below the token limit', { maxTokens: 15 }, ['SUCCESS', 'SUCCESS'], 'ask'],
  ] as const)('%s', (_when, limits, outcomes, next) => {
    expect(decideNextTurn(after(outcomes), { ...LIMITS, ...limits })).toBe(next);
  });

  test('S2-12: if only the decision is shown, a DENY counts as denied and as invalid', () => {
    const shown = after(['DENIED', 'VALIDATION_ERROR', 'EXECUTION_ERROR', 'SUCCESS'], 'decision');
    expect(shown).toMatchObject({ steps: 4, denials: 2, invalid: 2, invalid_in_a_row: 0 });
  });

  test('a token limit needs an agent that reports tokens', () => {
    const counts = countResponse(INITIAL_COUNTS, answered('SUCCESS'), null);
    expect(decideNextTurn(counts, LIMITS)).toBe('ask');
    expect(decideNextTurn(counts, { ...LIMITS, maxTokens: 1_000 })).toBe('tokens_unreported');
  });

  test('token counts stop where numbers stop being exact', () => {
    const most = countResponse(INITIAL_COUNTS, answered('SUCCESS'), Number.MAX_SAFE_INTEGER);
    expect(countResponse(most, answered('SUCCESS'), Number.MAX_SAFE_INTEGER).tokens).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('no responses lead to more turns than the limits permit', () => {
    const limit = fc.integer({ min: 1, max: 12 });
    const limits = fc.record({
      maxSteps: limit,
      maxDenials: limit,
      maxInvalid: limit,
      maxTokens: fc.option(fc.integer({ min: 1, max: 60 })),
    });
    const answers = fc.array(fc.tuple(fc.constantFrom(...OUTCOMES), fc.option(fc.nat(20))), { maxLength: 40 });
    fc.assert(
      fc.property(limits, answers, (given, all) => {
        let counts = INITIAL_COUNTS;
        let turns = 0;
        for (const [outcome, tokens] of all) {
          if (decideNextTurn(counts, given) !== 'ask') break;
          turns += 1;
          counts = countResponse(counts, answered(outcome), tokens);
        }
        const responses = all.slice(0, turns);
        expect(counts.steps).toBe(turns);
        expect(turns).toBeLessThanOrEqual(given.maxSteps);
        expect(responses.filter(([outcome]) => outcome === 'DENIED').length).toBeLessThanOrEqual(given.maxDenials);
        const before = responses.slice(0, -1).reduce((sum, [, tokens]) => sum + (tokens ?? 0), 0);
        if (given.maxTokens !== null) expect(before).toBeLessThan(given.maxTokens);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the final response', () => {
  test.each([
    ['a successful FINISH', answered('SUCCESS', 'detailed', 'FINISH'), 'x'],
    ['a successful FINISH, as a decision', answered('SUCCESS', 'decision', 'FINISH'), 'x'],
    ['a denied FINISH', answered('DENIED', 'detailed', 'FINISH'), null],
    ['a failed FINISH', answered('EXECUTION_ERROR', 'decision', 'FINISH'), null],
    ['another action', answered('SUCCESS', 'detailed', 'THINK'), null],
  ])('of %s', (_what, response, word) => {
    expect(finalResponseOf(response)).toBe(word);
  });
});
