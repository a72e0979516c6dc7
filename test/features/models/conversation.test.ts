import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AgentExchange } from '../../../src/engine/ports/agent-exchange.js';
import { CONVERSATION_BYTES_MIN, appendExchange } from '../../../src/features/models/conversation.js';
import { character } from '../../fixtures/characters.js';

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
