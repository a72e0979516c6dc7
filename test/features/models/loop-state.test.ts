import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { OUTCOMES, type Outcome } from '../../../src/core/contract/run/phase.js';
import type { Exposure, StepResponse } from '../../../src/core/contract/run/response.js';
import { buildResponse } from '../../../src/core/step/concluded-step.js';
import {
  countResponse,
  finalResponseOf,
  decideNextTurn,
  INITIAL_COUNTS,
  type LoopLimits,
  CONVERSATION_BYTES_MIN,
  appendExchange,
} from '../../../src/features/models/loop-state.js';
import type { AgentExchange } from '../../../src/engine/ports/agent-exchange.js';
import { character } from '../../fixtures/characters.js';

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

const bytesOf = (conversation: readonly AgentExchange[]): number =>
  conversation.reduce(
    (sum, { proposal, response }) => sum + Buffer.byteLength(proposal) + Buffer.byteLength(response),
    0,
  );

function rememberAll(said: readonly (readonly [string | Uint8Array, string])[], bytesMax: number) {
  let conversation: readonly AgentExchange[] = [];
  for (const [proposal, response] of said)
    conversation = appendExchange(conversation, { proposal, response }, bytesMax);
  return conversation;
}

test('exchanges that fit are kept unchanged, in order', () => {
  const exchanges = [
    ['{"a":1}', '{"b":1}'],
    [Buffer.from('ä'), '{"b":"\u202e"}'],
  ] as const;
  expect(rememberAll(exchanges, CONVERSATION_BYTES_MIN)).toEqual([
    { proposal: '{"a":1}', response: '{"b":1}', left_out: 0 },
    { proposal: 'ä', response: '{"b":"\u202e"}', left_out: 0 },
  ]);
});

test('the oldest exchanges are dropped first, except the very first; the gap is counted', () => {
  const exchanges = Array.from({ length: 20 }, (_, index) => [`p${index} ${'x'.repeat(400)}`, `r${index}`] as const);
  const remembered = rememberAll(exchanges, CONVERSATION_BYTES_MIN);
  expect(remembered.map(({ response }) => response)).toEqual([
    'r0',
    ...remembered.slice(1).map((_, i) => `r${21 - remembered.length + i}`),
  ]);
  expect(remembered.map(({ left_out }) => left_out)).toEqual([
    0,
    20 - remembered.length,
    ...remembered.slice(2).map(() => 0),
  ]);
  expect(remembered.length).toBe(10);
});

test.each([
  ['a long text', 'x'.repeat(5_000), 'x'.repeat(448), 5_000],
  ['a character at the cut', `${'x'.repeat(447)}😀${'x'.repeat(5_000)}`, 'x'.repeat(447), 5_451],
  ['bytes that are not UTF-8', new Uint8Array(5_000).fill(0xff), '\ufffd'.repeat(149), 5_000],
  ['bytes that grow when decoded', new Uint8Array(400).fill(0xff), '\ufffd'.repeat(149), 400],
] as const)('truncates %s, with a note', (_what, proposal, begins, bytes) => {
  const shown = appendExchange([], { proposal, response: '{}' }, CONVERSATION_BYTES_MIN);
  expect(shown[0]?.proposal).toBe(`${begins}\n[cut here: this had ${bytes} bytes]`);
});

test('the conversation stays within its limit, is well-formed, and contains the first and last exchange', () => {
  const text = fc.oneof(
    fc.string({ unit: character, maxLength: 400 }),
    fc.string({ maxLength: 6_000 }),
    fc.nat(9_000).map((length) => '\ud800'.repeat(length)),
  );
  const proposal = fc.oneof(text, fc.uint8Array({ maxLength: 6_000 }));
  const exchanges = fc.array(fc.tuple(proposal, text), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(exchanges, fc.integer({ min: CONVERSATION_BYTES_MIN, max: 20_000 }), (all, bytesMax) => {
      const remembered = rememberAll(all, bytesMax);
      expect(bytesOf(remembered)).toBeLessThanOrEqual(bytesMax);
      expect(remembered.every(({ proposal: said, response }) => (said + response).isWellFormed())).toBe(true);
      expect(remembered.reduce((sum, { left_out }) => sum + 1 + left_out, 0)).toBe(all.length);
      const [first] = rememberAll(all.slice(0, 1), bytesMax);
      const [last] = rememberAll(all.slice(-1), bytesMax);
      expect(remembered[0]).toEqual(first);
      expect(remembered.at(-1)?.response).toBe(last?.response);
    }),
    { numRuns: 100, seed: 1 },
  );
});
