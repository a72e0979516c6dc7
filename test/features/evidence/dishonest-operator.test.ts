// What an operator with the key of the ledger can do to make a bundle differ from the ledger.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import type { ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { signCheckpoint } from '../../../src/core/ledger/proof/checkpoint.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../../src/core/ledger/proof/merkle.js';
import type { NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { withholdByLanes } from '../../../src/runtime/content/lane-withholding.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import { readLedgerSigner } from '../../../src/home/ledger-key.js';
import { requireSignedHead } from '../../../src/runtime/ledger/ledger-proofs.js';
import { replay } from '../../../src/kernel/replay/replay.js';
import { Bench } from '../../fixtures/bench.js';
import {
  lineFileOf,
  linesIn,
  rechainedLines,
  signedBundle,
  withheldLine,
  type Line,
} from '../../fixtures/forged-evidence.js';
import { proposal } from '../../fixtures/tree.js';

let signer: NoteSigner;
/** The lines of a ledger in which no lane withholds, and of one in which the lane of the second run does. */
let open: Line[];
let withholding: Line[];

async function ledgerOf(withholds: boolean): Promise<Line[]> {
  const bench = await Bench.open({
    edit: (name, text) =>
      name === 'lanes' && withholds
        ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n')
        : text,
  });
  const agent = await bench.turnpike.startAgent();
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'a' })));
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.sh', content: 'a' })));
  await agent.end();
  await bench.turnpike.close();
  const paths = homePaths(bench.home);
  signer = readLedgerSigner(paths.ledgerKey)!;
  const { store, externalHeadStore } = openHome(paths, { readOnly: true });
  const lines: string[] = [];
  const head = requireSignedHead(await externalHeadStore.read());
  await writeEvidence(withholdByLanes(store), head, signer, (line) => Promise.resolve(void lines.push(line)));
  await store.close();
  await bench.check();
  rmSync(bench.folder, { recursive: true, force: true });
  return linesIn(lines.join(''));
}

beforeAll(async () => {
  open = await ledgerOf(false);
  withholding = await ledgerOf(true);
});

const opened = (text: string) => openEvidence(lineFileOf(text), signer);
const refused = (why: string) =>
  expect.objectContaining({ code: 'LEDGER_TAMPERED', message: expect.stringContaining(why) });
const at = (lines: readonly Line[], what: string): number => lines.findIndex(({ entry }) => entry.includes(what));
const changed = (lines: readonly Line[], index: number, change: (line: Line) => Line): Line[] =>
  lines.map((line, n) => (n === index ? change(line) : line));

describe('withheld content', () => {
  test('a bundle that is signed again without a change verifies, so that the others are rejected for their change', async () => {
    expect(await verifyEvidence(await opened(signedBundle(open, signer)))).toMatchObject({ verdict: 'verified' });
    const verdict = await verifyEvidence(await opened(signedBundle(withholding, signer)));
    expect(verdict).toMatchObject({ ok: false, verdict: 'by_hash_alone', problems: [], withheld: { trees: 1 } });
    if (verdict.verdict !== 'by_hash_alone') throw new Error('not by hash alone');
    expect(verdict.withheld.not_checked).toHaveLength(verdict.withheld.contents);
    expect(verdict.withheld.not_checked[0]).toMatchObject({
      kind: 'raw_payload',
      withheld: 'lane',
      case_id: 'case-local',
    });
  });

  test.each([0, 1, 2, 3])('S4-62: a policy or machine definition (%i) is never withheld', async (index) => {
    for (const why of ['lane', 'erased'] as const) {
      const lines = changed(open, 0, (line) => withheldLine(line, index, why));
      await expect(opened(signedBundle(lines, signer))).rejects.toEqual(refused('system content'));
    }
  });

  test.each(['lane', 'erased'] as const)(
    'S4-62: a policy that is pinned as content of a case is not withheld (%s), nor is content of its lanes',
    async (why) => {
      const disguised = changed(open, 0, (line) => {
        const entry = JSON.parse(line.entry) as Entry;
        if (entry.type !== 'input' || entry.body.kind !== 'open') throw new Error('no opening');
        const { policies, machines } = entry.body;
        const note = ({ artifact_id, hash_sha256, byte_size }: ArtifactRef): ArtifactRef => ({
          ...{ artifact_id, artifact_kind: 'note', hash_sha256, byte_size: byte_size ?? 0 },
          ...{ scope: 'case', case_id: 'case-local' },
        });
        const pin = (name: 'lanes' | 'roles' | 'actions') => ({
          ...policies[name],
          artifact: note(policies[name].artifact),
        });
        const pins = { lanes: pin('lanes'), roles: pin('roles'), actions: pin('actions') };
        const body = { ...entry.body, policies: pins, machines: note(machines) };
        const artifacts = line.artifacts.map((one) => ({ ...one, kind: 'note' as const, case_id: 'case-local' }));
        const notes = { entry: canonicalJson({ ...entry, body }), artifacts };
        return [0, 1, 2, 3].reduce<Line>((rest, index) => withheldLine(rest, index, why), notes);
      });
      const lines = rechainedLines(
        changed(disguised, at(open, '"kind":"proposal"'), (line) => withheldLine(line, 0, why)),
      );
      await expect(opened(signedBundle(lines, signer))).rejects.toEqual(refused('policies that its tree has pinned'));
    },
  );

  test('S4-62: a tree that pins its policies as content of a case is rejected even if the content is present', async () => {
    const lines = changed(open, 0, (line) => ({
      entry: line.entry.replaceAll('"artifact_kind":"policy"', '"artifact_kind":"note"'),
      artifacts: line.artifacts.map((one) => (one.kind === 'policy' ? { ...one, kind: 'note' as const } : one)),
    }));
    const bundle = opened(signedBundle(rechainedLines(lines), signer));
    const verdict = await bundle.then(verifyEvidence);
    expect(verdict).toMatchObject({ verdict: 'refused', problems: [{ rule: 'replay.artifact', log_index: 0 }] });
    expect(await replay(await bundle)).toMatchObject({ verdict: 'differs', difference: { rule: 'artifact.differs' } });
  });

  test('S4-62: content of a lane that does not withhold is not withheld', async () => {
    const lines = changed(open, at(open, '"kind":"proposal"'), (line) => withheldLine(line, 0));
    await expect(opened(signedBundle(lines, signer))).rejects.toEqual(refused('does not withhold'));
  });

  test('S4-62: only the pinned policy of the tree decides what its lanes withhold', async () => {
    const [policy] = withholding[0]!.artifacts;
    const lines = changed(open, at(open, '"kind":"proposal"'), (line) => withheldLine(line, 0));
    for (const artifacts of [
      [policy!, ...lines[0]!.artifacts],
      [policy!, ...lines[0]!.artifacts.slice(1)],
      lines[0]!.artifacts.slice(1),
      [],
    ]) {
      const forged = changed(lines, 0, (line) => ({ ...line, artifacts }));
      await expect(opened(signedBundle(forged, signer))).rejects.toEqual(refused('policies that its tree has pinned'));
    }
  });

  test('S4-62: a verdict with erased content is never a full proof', async () => {
    const lines = changed(open, at(open, '"kind":"proposal"'), (line) => withheldLine(line, 0, 'erased'));
    const bundle = await opened(signedBundle(lines, signer));
    expect(await verifyEvidence(bundle)).toMatchObject({ ok: false, verdict: 'by_hash_alone' });
    expect(await replay(bundle)).toMatchObject({ ok: false, verdict: 'by_hash_alone', difference: null });
  });

  test('a denial changed to an allow is found, also if a lane withholds the proposal', async () => {
    const forge = (lines: readonly Line[]): Line[] =>
      rechainedLines(
        lines.map((line) => ({ ...line, entry: line.entry.replace('"decision":"deny"', '"decision":"allow"') })),
      );
    expect(await verifyEvidence(await opened(signedBundle(forge(open), signer)))).toMatchObject({ verdict: 'refused' });
    expect((await verifyEvidence(await opened(signedBundle(forge(withholding), signer)))).ok).toBe(false);
  });
});

describe('a replay', () => {
  test('of nothing does not report ok', async () => {
    expect(await replay(await opened(signedBundle([], signer)))).toMatchObject({ ok: false, verdict: 'nothing' });
  });

  test("of a tree that ends in the middle of an input's consequences names the missing entry", async () => {
    const bundle = await opened(signedBundle(open.slice(0, -1), signer));
    const report = await replay(bundle);
    expect(report).toMatchObject({
      ok: false,
      verdict: 'differs',
      difference: { rule: 'entry.missing', log_index: null },
    });
  });

  test('of a log that is shorter than its heads does not report ok', async () => {
    const whole = await opened(signedBundle(open, signer));
    // Up to the end of the last input but one, so that no tree is cut within an input.
    const inputs = open.flatMap(({ entry }, index) => (entry.includes('"type":"input"') ? [index] : []));
    const end = inputs.at(-1)!;
    const source = {
      ...whole,
      async *log() {
        for await (const entry of whole.log()) if (entry.log_index < end) yield entry;
      },
    };
    expect(await replay(source)).toMatchObject({
      verdict: 'differs',
      difference: { rule: 'log.cut', log_index: end, expected: `${open.length} entries`, found: `${end} entries` },
    });
    expect(await replay({ log: () => source.log(), tree: whole.tree, artifactsOf: whole.artifactsOf })).toMatchObject({
      verdict: 'replayed',
    });
  });
});

describe('a bundle of parts that were signed separately', () => {
  const headOf = (lines: readonly Line[]) =>
    extendHead(
      EMPTY_HEAD,
      lines.map(({ entry }) => leafHash(entry)),
    );

  test('with the checkpoint of a longer, shorter or other log is rejected before an entry is read', async () => {
    const other = { ...headOf(open), root: 'ab'.repeat(32) };
    for (const head of [headOf(open.slice(0, -1)), { ...headOf(open), size: open.length + 1 }, other]) {
      const text = signedBundle(open, signer, signCheckpoint(head, signer));
      await expect(opened(text)).rejects.toEqual(refused('checkpoint'));
    }
  });

  test('with a bad checkpoint, statement or hash is rejected before its lines are parsed', async () => {
    const text = signedBundle(open, signer);
    const lines = text.split('\n');
    const swap = (index: number, from: string, to: string): string =>
      lines.map((line, n) => (n === index ? line.replace(from, to) : line)).join('\n');
    const forged = [
      swap(0, '"checkpoint":"', '"checkpoint":"x'),
      swap(lines.length - 2, '"sig":"', '"sig":"AAAA'),
      swap(3, '"entry":"', '"entry":" '),
    ];
    for (const bundle of forged) {
      const file = lineFileOf(bundle);
      const lines = () => {
        throw new Error('its lines were read');
      };
      await expect(openEvidence({ ...file, lines }, signer)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    }
  });
});
