// What a bag proves: with the key of the ledger, that everything in it is in the log of that key; without it, nothing.

import { describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { openBagFolder } from '../../../../src/features/exports/bag/bag-folder.js';
import type { BagEntry, BagProof } from '../../../../src/core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import type { ExportBundle } from '../../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { EXPORT_BAG_RULES } from '../../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../../src/features/exports/verify/verify-export-bag.js';
import { homePaths } from '../../../../src/home/home.js';
import { readLedgerSigner } from '../../../../src/home/ledger-key.js';
import { Bench } from '../../../fixtures/bench.js';
import {
  digestsOf,
  json,
  linesIn,
  linesOf,
  signedAgain,
  signer,
  stranger,
  signedBag,
  withJson,
} from '../bag-forging.js';
import {
  exportRequested,
  assembleBundle,
  filesOf,
  writeFiles,
  ledgerOf,
  requestFor,
  rulesOf,
  RULES_OF_PROOFS,
  SECOND,
  sealed,
  STORY,
  TREE,
  type Files,
} from '../material.js';

const { at, verified, good } = signedBag();

describe('a bag with a proof', () => {
  test('S4-77: is authenticated by the key of its ledger, and by no other', async () => {
    const report = await verified(good());
    expect([report.valid, rulesOf(report)]).toEqual([true, []]);
    expect(report.authentication).toEqual({
      verdict: 'authenticated',
      key: `${signer.name}+${signer.key_hash}`,
      why: null,
    });
    const refused = await verified(good(), stranger);
    expect([refused.valid, rulesOf(refused)]).toEqual([false, ['bundle.proof_unsigned']]);
  });

  test('S4-77: is valid and unauthenticated without a key', async () => {
    const report = await verified(good(), null);
    expect([report.valid, report.authentication]).toMatchObject([true, { verdict: 'unauthenticated' }]);
  });

  test('verifies after signing it again without a change', async () => {
    expect(digestsOf(signedAgain(good()))).toEqual(digestsOf(good()));
    expect(await verified(signedAgain(good()))).toMatchObject({ valid: true });
  });

  test('with another key is rejected before it is read', async () => {
    const folder = at('early');
    writeFiles(folder, good());
    const tree = openBagFolder(folder);
    const read: string[] = [];
    const watched = {
      entries: () => tree.entries(),
      read: (path: string) => {
        read.push(path);
        return tree.read(path);
      },
      close: () => tree.close(),
    };
    expect((await verifyExportBag(watched, stranger)).valid).toBe(false);
    expect(read).toEqual(['data/proof.json']);
    await tree.close();
  });
});

describe('a bag without a proof', () => {
  const stripped = (): Files => {
    const rest = Object.entries(good()).filter(([path]) => !['data/proof.json', 'data/entries.jsonl'].includes(path));
    return Object.fromEntries(rest);
  };

  test('is read as before, and is unauthenticated', async () => {
    const store = await ledgerOf([...STORY, exportRequested(SECOND)]);
    await assembleBundle(store, requestFor(at('older'), { approvals: [] }));
    const older = filesOf(at('older'));
    for (const key of [signer, null]) {
      const report = await verified(older, key);
      expect([report.valid, report.authentication]).toMatchObject([true, { verdict: 'unauthenticated', key: null }]);
    }
    const info = stripped()['bag-info.txt']!.toString().replace('Turnpike-Log: signed', 'Turnpike-Log: none');
    const made = sealed({ ...stripped(), 'bag-info.txt': Buffer.from(info) });
    expect(digestsOf(made)).toEqual(digestsOf(older));
  });

  test('that declares one, which was removed, is invalid', async () => {
    const report = await verified(sealed(stripped()));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.info_differs']]);
    const half = await verified(sealed({ ...stripped(), 'data/entries.jsonl': good()['data/entries.jsonl']! }), null);
    expect(half.valid).toBe(false);
  });
});

/** Changes denials to allows wherever they occur. */
function allowDenials(files: Files): Files {
  const replaced = (text: string): string => text.replaceAll('"outcome":"failure"', '"outcome":"success"');
  const entries = linesIn(files, 'data/entries.jsonl').map((line) => {
    const { entry, index } = JSON.parse(line) as BagEntry;
    return canonicalJson({ entry: replaced(entry), index });
  });
  return {
    ...files,
    'data/audit.jsonl': linesOf(linesIn(files, 'data/audit.jsonl').map(replaced)),
    'data/entries.jsonl': linesOf(entries),
  };
}

const CHANGES: readonly (readonly [string, (files: Files) => Files, string])[] = [
  [
    'an event is changed',
    (files) => ({ ...files, 'data/audit.jsonl': allowDenials(files)['data/audit.jsonl']! }),
    'bundle.not_logged',
  ],
  ['an event and its entry are changed', allowDenials, 'bundle.entry_place'],
  [
    'an entry is left out',
    (files) => ({ ...files, 'data/entries.jsonl': linesOf(linesIn(files, 'data/entries.jsonl').toSpliced(9, 1)) }),
    'bundle.entry_place',
  ],
  [
    'the last entry of a tree is left out',
    (files) => ({ ...files, 'data/entries.jsonl': linesOf(linesIn(files, 'data/entries.jsonl').slice(0, -1)) }),
    'bundle.proof_differs',
  ],
  [
    'an entry is moved',
    (files) => {
      const lines = linesIn(files, 'data/entries.jsonl');
      const last = JSON.parse(lines.at(-1)!) as BagEntry;
      return {
        ...files,
        'data/entries.jsonl': linesOf([...lines.slice(0, -1), canonicalJson({ ...last, index: last.index + 1 })]),
      };
    },
    'bundle.proof_differs',
  ],
  [
    'two entries are exchanged',
    (files) => {
      const lines = linesIn(files, 'data/entries.jsonl');
      return { ...files, 'data/entries.jsonl': linesOf(lines.with(4, lines[5]!).with(5, lines[4]!)) };
    },
    'bundle.entry_place',
  ],
  [
    'a line is not an entry',
    (files) => {
      const lines = linesIn(files, 'data/entries.jsonl');
      const { index } = JSON.parse(lines.at(-1)!) as BagEntry;
      return {
        ...files,
        'data/entries.jsonl': linesOf([...lines.slice(0, -1), canonicalJson({ entry: '{}', index })]),
      };
    },
    'bundle.entry_malformed',
  ],
  [
    'the proof has an extra member',
    (files) => withJson(files, 'data/proof.json', { ...json<BagProof>(files, 'data/proof.json'), more: 1 }),
    'bundle.proof_malformed',
  ],
  [
    'a hash of the proof is left out',
    (files) => {
      const proof = json<BagProof>(files, 'data/proof.json');
      return withJson(files, 'data/proof.json', { ...proof, hashes: proof.hashes.slice(1) });
    },
    'bundle.proof_differs',
  ],
  [
    'an artifact is replaced, with its name and its place in the manifest',
    (files) => {
      const manifest = json<ExportBundle>(files, 'data/manifest.json');
      const [first, ...rest] = manifest.contents.artifacts;
      const bytes = Buffer.from('something else');
      const hash_sha256 = createHash('sha256').update(bytes).digest('hex');
      const ref = { ...first!, hash_sha256, artifact_id: `sha256:${hash_sha256}`, byte_size: bytes.length };
      const artifacts = [ref, ...rest].sort((one, other) => (one.hash_sha256 < other.hash_sha256 ? -1 : 1));
      const others = Object.entries(files).filter(([path]) => path !== `data/artifacts/${first!.hash_sha256}`);
      const changed = { ...Object.fromEntries(others), [`data/artifacts/${hash_sha256}`]: bytes };
      return withJson(changed, 'data/manifest.json', { ...manifest, contents: { artifacts } });
    },
    'bundle.not_logged',
  ],
  [
    'a policy that no tree has pinned is added',
    (files) => ({ ...files, [`data/policies/lanes-${sha256('lanes: {}')}.yaml`]: Buffer.from('lanes: {}') }),
    'bundle.not_logged',
  ],
  ...['lanes', 'roles', 'actions'].map(
    (name) =>
      [
        `the ${name} policy of a tree is left out`,
        (files: Files): Files =>
          Object.fromEntries(Object.entries(files).filter(([path]) => !path.startsWith(`data/policies/${name}-`))),
        'bundle.policy_missing',
      ] as const,
  ),
  [
    'an artifact is left out, with its place in the manifest',
    (files) => {
      const manifest = json<ExportBundle>(files, 'data/manifest.json');
      const [first, ...artifacts] = manifest.contents.artifacts;
      const path = `data/artifacts/${first!.hash_sha256}`;
      const others = Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));
      return withJson(others, 'data/manifest.json', { ...manifest, contents: { artifacts } });
    },
    'bundle.not_logged',
  ],
  [
    'an event is left out of the manifest and its file',
    (files) => {
      const manifest = json<ExportBundle>(files, 'data/manifest.json');
      const ids = manifest.audit!.audit_event_ids.slice(0, -1);
      const audit = { ...manifest.audit!, audit_event_ids: ids };
      return withJson(
        { ...files, 'data/audit.jsonl': linesOf(linesIn(files, 'data/audit.jsonl').slice(0, -1)) },
        'data/manifest.json',
        { ...manifest, audit },
      );
    },
    'bundle.not_logged',
  ],
];

describe('a bag that was changed and is again a valid BagIt bag', () => {
  test.each(CHANGES)('is rejected if %s, with and without the signature of the key', async (_what, change, rule) => {
    const unsigned = await verified(sealed(change(good())));
    expect([unsigned.valid, unsigned.authentication?.verdict]).toEqual([false, 'unauthenticated']);
    const signed = await verified(signedAgain(change(good())));
    expect(signed.valid).toBe(false);
    expect(rulesOf(signed)).toContain(rule);
    expect((await verified(signedAgain(change(good())), null)).valid).toBe(false);
  });

  test('with another reason or approval than its export run requested is rejected', async () => {
    const bench = await Bench.open();
    const by = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' };
    await (await bench.turnpike.startAgent()).end();
    const run = await bench.turnpike.export({ ...by, reason: 'a request', destination: 'bag' });
    expect(await run.finished).toMatchObject({ state: 'completed' });
    const owner = readLedgerSigner(homePaths(bench.home).ledgerKey)!;
    const files = filesOf(join(bench.folder, 'bag'));
    expect(await verified(files, owner)).toMatchObject({ valid: true, authentication: { verdict: 'authenticated' } });
    const manifest = json<ExportBundle>(files, 'data/manifest.json');
    // The reason itself is only in the request.
    expect(JSON.stringify(manifest)).not.toContain('a request');
    expect(manifest.export_reason).toBe(`sha256:${sha256('a request')}`);
    const approvals = [{ approval_type: 'compliance', approved_by: 'berta', approved_at_utc: manifest.created_at_utc }];
    for (const other of [
      { export_reason: 'a request' },
      { export_reason: 'another' },
      { bundle_kind: 'other' },
      { approvals },
    ]) {
      const forged = signedAgain(withJson(files, 'data/manifest.json', { ...manifest, ...other }), owner);
      expect(rulesOf(await verified(forged, owner))).toContain('bundle.request_differs');
    }
    await bench.close();
  });

  test('with another manifest is rejected, even if the key has signed it', async () => {
    const manifest = json<ExportBundle>(good(), 'data/manifest.json');
    const changed = withJson(good(), 'data/manifest.json', { ...manifest, export_reason: 'another one' });
    expect((await verified(sealed(changed))).valid).toBe(false);
    expect((await verified(signedAgain(changed, stranger))).valid).toBe(false);
    expect(rulesOf(await verified(signedAgain(changed)))).toEqual(['bundle.request_differs']);
  });

  test.each([
    ['an agent run', `${TREE}.1`],
    ['an agent run in the tree of the export', `${SECOND}.1`],
    ['the root of the export', SECOND],
  ])('S4-77: that names %s as its export run is rejected: bag-info.txt is not signed', async (_which, run_id) => {
    const [root] = run_id.split('.');
    const info = good()
      ['bag-info.txt']!.toString()
      .replace(
        /Turnpike-Run-Id: .*\nTurnpike-Root-Run-Id: .*\n/,
        `Turnpike-Run-Id: ${run_id}\nTurnpike-Root-Run-Id: ${root}\n`,
      );
    expect(info).toContain(`Turnpike-Run-Id: ${run_id}\n`);
    const report = await verified(sealed({ ...good(), 'bag-info.txt': Buffer.from(info) }));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.request_differs']]);
  });

  test('S4-77: that names another root for its export run is rejected', async () => {
    const info = good()
      ['bag-info.txt']!.toString()
      .replace(/(Turnpike-Root-Run-Id: ).*\n/, `$1${TREE}\n`);
    const report = await verified(sealed({ ...good(), 'bag-info.txt': Buffer.from(info) }));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.info_differs']]);
  });

  test('S4-77: whose log contains no request of the export is rejected', async () => {
    await assembleBundle(await ledgerOf(), requestFor(at('unasked'), { approvals: [] }), { signer });
    expect(rulesOf(await verified(filesOf(at('unasked'))))).toEqual(['bundle.request_differs']);
  });

  test('S4-78: with the approval of a vote that did not count is rejected', async () => {
    const bench = await Bench.open({
      edit: (name, text) =>
        name === 'actions'
          ? `${text}\napprovals:\n  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 5 }\n`
          : text,
    });
    const role = 'ATTORNEY_ADMIN';
    const by = { actor: 'anna', role, case: 'case-local' };
    await (await bench.turnpike.startAgent()).end();
    const run = await bench.turnpike.export({ ...by, reason: 'a request', destination: 'bag' });
    for (const actor of ['anna', 'berta']) {
      await bench.turnpike.approve({ run: run.run_id, digests: [run.digest!], decision: 'approve', actor, role });
    }
    expect(await run.finished).toMatchObject({ state: 'completed' });
    const owner = readLedgerSigner(homePaths(bench.home).ledgerKey)!;
    const files = filesOf(join(bench.folder, 'bag'));
    expect(await verified(files, owner)).toMatchObject({ valid: true, authentication: { verdict: 'authenticated' } });
    const manifest = json<ExportBundle>(files, 'data/manifest.json');
    const votes = (await bench.entries()).flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'vote' ? [body] : [],
    );
    expect(manifest.approvals).toMatchObject([{ approved_by: 'berta', approved_at_utc: votes[1]!.time }]);
    const approvals = [{ ...manifest.approvals![0]!, approved_by: 'anna', approved_at_utc: votes[0]!.time }];
    const forged = signedAgain(withJson(files, 'data/manifest.json', { ...manifest, approvals }), owner);
    expect(rulesOf(await verified(forged, owner))).toEqual(['bundle.request_differs']);
    await bench.close();
  });
});

test('every rule about proofs is violated by some case', () => {
  const violated = new Set([...CHANGES.map(([, , rule]) => rule), 'bundle.proof_unsigned', 'bundle.request_differs']);
  expect([...violated]).toEqual(expect.arrayContaining([...RULES_OF_PROOFS]));
  expect(Object.keys(EXPORT_BAG_RULES)).toEqual(expect.arrayContaining([...RULES_OF_PROOFS]));
});
