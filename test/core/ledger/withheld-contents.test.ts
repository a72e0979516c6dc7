// Verification and contents that it could not check (C86): all are counted, some are listed, and content by which
// decisions are checked must not be missing at all.

import { describe, expect, test } from '@jest/globals';
import {
  ARTIFACT_KINDS,
  SYSTEM_ARTIFACT_KINDS,
  type WithheldArtifact,
} from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { StoredEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { UNCHECKED_LISTED_MAX } from '../../../src/core/ledger/verification/ledger-verdict.js';
import {
  verifyLedger,
  type LedgerSource,
  WithheldContents,
} from '../../../src/core/ledger/verification/verify-ledger.js';
import { opening, scribeOf, treeId } from '../../fixtures/entries.js';

const entry = (log_index: number): StoredEntry => ({
  log_index,
  tree_id: 'run_000000000000000000001',
  seq: log_index,
  type: 'input',
  text: '',
  leaf_hash: '',
});
const withheld = (over: Partial<WithheldArtifact> = {}): WithheldArtifact => ({
  kind: 'raw_payload',
  case_id: 'case-0001',
  withheld: 'lane',
  sha256: 'a'.repeat(64),
  byte_size: 7,
  ...over,
});

describe('C86: contents that could not be checked', () => {
  test('are listed by their entry; without any, nothing is reported', () => {
    const contents = new WithheldContents();
    expect(contents.report(0, [])).toBeNull();
    expect(contents.add(entry(5), withheld())).toEqual([]);
    expect(contents.add(entry(9), withheld({ kind: 'result', withheld: 'erased' }))).toEqual([]);
    const about = { tree_id: entry(0).tree_id, case_id: 'case-0001', sha256: 'a'.repeat(64) };
    expect(contents.report(3, [])).toEqual({
      contents: 2,
      trees: 3,
      not_checked: [
        { ...about, log_index: 5, seq: 5, kind: 'raw_payload', withheld: 'lane' },
        { ...about, log_index: 9, seq: 9, kind: 'result', withheld: 'erased' },
      ],
    });
  });

  test('are all counted, and listed up to a limit', () => {
    const contents = new WithheldContents();
    for (let n = 0; n < UNCHECKED_LISTED_MAX + 5; n += 1) contents.add(entry(n), withheld());
    const report = contents.report(1, []);
    expect([report?.contents, report?.not_checked.length]).toEqual([UNCHECKED_LISTED_MAX + 5, UNCHECKED_LISTED_MAX]);
    expect(report?.not_checked.at(-1)).toMatchObject({ log_index: UNCHECKED_LISTED_MAX - 1 });
  });

  test.each(ARTIFACT_KINDS)(
    '%s of a case may be missing, unless decisions are checked by it; without a case it may not',
    (kind) => {
      const contents = new WithheldContents();
      const rules = (case_id: string | null, how: WithheldArtifact['withheld']): readonly string[] =>
        contents.add(entry(0), withheld({ kind, case_id, withheld: how })).map(({ rule }) => rule);
      const isSystem = SYSTEM_ARTIFACT_KINDS.includes(kind);
      for (const how of ['lane', 'erased'] as const) {
        expect(rules('case-0001', how)).toEqual(isSystem ? ['artifact.system_withheld'] : []);
        expect(rules(null, how)).toEqual(['artifact.system_withheld']);
      }
    },
  );

  test('decisions are checked by policies and machines', () => {
    expect(SYSTEM_ARTIFACT_KINDS).toEqual(['policy', 'machines']);
  });
});

test.each(SYSTEM_ARTIFACT_KINDS)(
  'C86: a ledger with withheld %s is refused, even if nothing else is wrong with it',
  async (kind) => {
    const store = memoryStore();
    await (await scribeOf(store)).write(store, [opening(treeId(1), 'case-0001')]);
    const source = (isWithheld: boolean): LedgerSource => ({
      log: (from) => store.log(from),
      head: () => store.head(),
      externalHead: null,
      artifactsOf: async (place) =>
        (await store.artifactsOf(place)).map((artifact) =>
          isWithheld && artifact.kind === kind && 'bytes' in artifact
            ? withheld({ kind, case_id: null, sha256: sha256(artifact.bytes), byte_size: artifact.bytes.byteLength })
            : artifact,
        ),
    });
    expect(await verifyLedger(source(false), { complete: false })).toMatchObject({ verdict: 'verified' });
    const verdict = await verifyLedger(source(true), { complete: false });
    const rules = verdict.verdict === 'refused' ? verdict.problems.map(({ rule }) => rule) : [];
    expect([verdict.verdict, [...new Set(rules)]]).toEqual(['refused', ['artifact.system_withheld']]);
  },
);
