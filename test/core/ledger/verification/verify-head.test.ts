// Each rule about contents and heads on its own (see forged-ledger.ts).

import { describe, expect, test } from '@jest/globals';
import { type Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { LedgerError } from '../../../../src/core/errors.js';
import { verifyLedger, type LedgerSource } from '../../../../src/core/ledger/verification/verify-ledger.js';
import type { LogHead } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { content } from '../../../fixtures/entries.js';
import {
  CREATED,
  EVENT,
  forge,
  headOf,
  ledger,
  problemsOf,
  PROPOSAL,
  RESULT,
  SIZE,
  sourceOf,
  withContent,
} from './forged-ledger.js';

describe('the content of an entry', () => {
  test('S4-83: content without a reference is named', async () => {
    const source = sourceOf(withContent(EVENT, () => [content('result', 'foisted')]));
    expect(await problemsOf(source)).toEqual([[EVENT, 'artifact.unreferenced']]);
  });

  test.each([0, PROPOSAL, RESULT])(
    'S4-83: an input without its referenced content is named (entry %i)',
    async (place) => {
      const source = sourceOf(withContent(place, (brought) => brought.slice(1)));
      expect(await problemsOf(source)).toEqual([[place, 'artifact.missing']]);
    },
  );

  test.each<[string, (artifact: Artifact) => Artifact]>([
    ['other bytes', (artifact) => ({ ...artifact, bytes: Buffer.from('other') })],
    ['a byte more', (artifact) => ({ ...artifact, bytes: Buffer.concat([artifact.bytes, Buffer.of(0)]) })],
    ['another case', (artifact) => ({ ...artifact, case_id: 'case-0002' })],
    ['no case', (artifact) => ({ ...artifact, case_id: null })],
    ['another kind', (artifact) => ({ ...artifact, kind: 'response' })],
  ])('D14: an input whose content has %s is named', async (_what, change) => {
    const source = sourceOf(withContent(RESULT, (brought) => brought.map(change)));
    expect(await problemsOf(source)).toEqual([
      [RESULT, 'artifact.unreferenced'],
      [RESULT, 'artifact.missing'],
    ]);
  });

  test('D14: a reference with another size than its content is named', async () => {
    const forged = forge(RESULT, (entry) => {
      const result = entry.body['result'] as Record<string, unknown>;
      return { ...entry, body: { ...entry.body, result: { ...result, byte_size: 1 } } };
    });
    expect((await problemsOf(sourceOf(forged))).map(([place]) => place)).toEqual([RESULT, RESULT]);
  });

  test('content that the store reports as changed is named; a store that cannot read throws an error', async () => {
    const failing = (code: 'LEDGER_TAMPERED' | 'LEDGER_UNAVAILABLE'): LedgerSource => ({
      ...sourceOf(ledger),
      artifactsOf: (place) =>
        place.log_index === RESULT
          ? Promise.reject(new LedgerError({ code, message: 'gone' }))
          : sourceOf(ledger).artifactsOf(place),
    });
    expect(await problemsOf(failing('LEDGER_TAMPERED'))).toEqual([[RESULT, 'artifact.unreadable']]);
    await expect(verifyLedger(failing('LEDGER_UNAVAILABLE'))).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  });
});

describe('the head', () => {
  test.each<[string, (head: LogHead) => LogHead]>([
    ['another root', (head) => ({ ...head, root: sha256('other') })],
    ['another frontier', (head) => ({ ...head, frontier: head.frontier.map(() => sha256('other')) })],
    ['a larger size', (head) => ({ ...head, size: head.size + 1 })],
    ['a smaller size', (head) => ({ ...head, size: head.size - 1 })],
  ])('a stored head with %s is named', async (_what, change) => {
    const found = await problemsOf(sourceOf(ledger, { head: change(headOf(ledger.entries)) }));
    expect(new Set(found.map(([, rule]) => rule))).toEqual(new Set(['head.stored']));
  });

  test('D15, C61: a truncated ledger with a corrected head is below its external head', async () => {
    const entries = ledger.entries.slice(0, SIZE - 1);
    const source = sourceOf({ ...ledger, entries }, { externalHeadStore: headOf(ledger.entries) });
    expect(await problemsOf(source)).toEqual([[SIZE - 1, 'head.below']]);
    expect(
      await problemsOf(sourceOf({ ...ledger, entries: [] }, { externalHeadStore: headOf(ledger.entries) })),
    ).toEqual([[0, 'head.below']]);
  });

  test('D15, C61: a rewritten, consistent ledger differs from its external head', async () => {
    const externalHeadStore = headOf(ledger.entries);
    const forged = forge(CREATED, (entry) => ({ ...entry, body: { ...entry.body, role_id: 'another_role' } }));
    expect(await problemsOf(sourceOf(forged))).toEqual([]);
    expect(await problemsOf(sourceOf(forged, { externalHeadStore }))).toEqual([[null, 'head.differs']]);
    const earlier = headOf(ledger.entries.slice(0, CREATED + 1));
    expect(await problemsOf(sourceOf(forged, { externalHeadStore: earlier }))).toEqual([[null, 'head.differs']]);
  });

  test('a head that the store has lost is named', async () => {
    const lost = new LedgerError({ code: 'LEDGER_TAMPERED', message: 'lost' });
    expect(await problemsOf({ ...sourceOf(ledger), head: () => Promise.reject(lost) })).toEqual([
      [0, 'log.unreadable'],
    ]);
  });
});
