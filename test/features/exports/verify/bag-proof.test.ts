// What a bag proves: with the key of the ledger, that everything in it is in the log of that key; without it, nothing.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { artifactRef } from '../../../../src/core/contract/artifact-ref.js';
import {
  CHECKPOINT_CHARACTERS_MAX,
  type BagEntry,
  type BagProof,
} from '../../../../src/core/contract/evidence/bag-proof.js';
import type { ExportBundle } from '../../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import { NO_PREV, type Entry, type StartRunInput } from '../../../../src/core/contract/run/entry.js';
import { BagError } from '../../../../src/core/errors.js';
import { sealEntry } from '../../../../src/core/ledger/entry-text.js';
import { checkpointText } from '../../../../src/core/ledger/proof/checkpoint.js';
import { EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import type { BagTree } from '../../../../src/engine/ports/bag-tree.js';
import { openBagFolder } from '../../../../src/features/exports/bag/bag-folder.js';
import type { CaseEntries } from '../../../../src/features/exports/bag-contents.js';
import { EXPORT_BAG_LIMITS } from '../../../../src/features/exports/bag-format.js';
import { bagLogFiles } from '../../../../src/features/exports/bag-payload.js';
import {
  EXPORT_BAG_RULES,
  type ExportBagReport,
  type LogLimits,
} from '../../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../../src/features/exports/verify/verify-export-bag.js';
import { homePaths } from '../../../../src/home/home.js';
import { readLedgerSigner } from '../../../../src/home/ledger-key.js';
import { Bench } from '../../../fixtures/bench.js';
import { digestsOf, json, signedAgain, signer, stranger, signedBag, withJson } from '../bag-forging.js';
import {
  all,
  AUDIT,
  bytes,
  info,
  lines,
  manifest,
  MANIFEST,
  RUNS,
  swapped,
  text,
  without,
  type Change,
} from '../bundle-changes.js';
import {
  exportRequested,
  assembleBundle,
  CASE,
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

const ENTRIES = 'data/entries.jsonl';
const PROOF = 'data/proof.json';

const { at, verified, good } = signedBag();
const artifactPath = (hash_sha256: string): string => `data/artifacts/${hash_sha256}`;
/** Artifacts in the order of a manifest. */
const inOrder = <T extends { readonly hash_sha256: string }>(artifacts: readonly T[]): T[] =>
  artifacts.toSorted((one, other) => (one.hash_sha256 < other.hash_sha256 ? -1 : 1));

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
    expect(read).toEqual([PROOF]);
    await tree.close();
  });
});

describe('a bag without a proof', () => {
  const stripped = (): Files => without(without(good(), PROOF), ENTRIES);
  const undeclared = (): Files => info('Turnpike-Log: signed', 'Turnpike-Log: none')(stripped());

  test('is read as before, and is unauthenticated', async () => {
    const store = await ledgerOf([...STORY, exportRequested(SECOND)]);
    await assembleBundle(store, requestFor(at('older'), { approvals: [] }));
    const older = filesOf(at('older'));
    for (const key of [signer, null]) {
      const report = await verified(older, key);
      expect([report.valid, report.authentication]).toMatchObject([true, { verdict: 'unauthenticated', key: null }]);
    }
    expect(digestsOf(sealed(undeclared()))).toEqual(digestsOf(older));
  });

  test('that declares one, which was removed, is invalid', async () => {
    const report = await verified(sealed(stripped()));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.info_differs']]);
    expect((await verified(sealed({ ...stripped(), [ENTRIES]: good()[ENTRIES]! }), null)).valid).toBe(false);
  });

  test.each([PROOF, ENTRIES])('that has %s nevertheless is invalid', async (path) => {
    expect(await verified(sealed({ ...undeclared(), [path]: good()[path]! }), null)).toMatchObject({ valid: false });
  });
});

describe('the signature of a bag', () => {
  test('is that of the key in the bag, also if another key has signed, too', async () => {
    const proof = json<BagProof>(good(), PROOF);
    const { checkpoint } = json<BagProof>(signedAgain(good(), stranger), PROOF);
    // The lines after the empty one are those that a signer adds to a note.
    const both = { ...proof, checkpoint: `${proof.checkpoint}${checkpoint.slice(checkpoint.indexOf('\n\n') + 2)}` };
    expect(await verified(sealed(withJson(good(), PROOF, both)))).toMatchObject({ valid: true });
    const report = await verified(sealed(withJson(good(), PROOF, { ...both, key: stranger.vkey })));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.proof_unsigned']]);
    expect(report.authentication).toMatchObject({ verdict: 'unauthenticated' });
  });

  test('of one bag does not fit a bag with another manifest, which no export run has requested', async () => {
    const changed = manifest((m) => (m.export_reason = 'another one'))(good());
    expect((await verified(signedAgain(changed, stranger))).valid).toBe(false);
    const signed = signedAgain(changed);
    expect(rulesOf(await verified(signed))).toEqual(['bundle.request_differs']);
    const report = await verified(sealed({ ...signed, [PROOF]: good()[PROOF]! }));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.proof_unsigned']]);
  });
});

describe('the file of a proof', () => {
  /** What is found in a bag that consists of a proof. */
  const verifiedProof = (size: number, read: BagTree['read']): Promise<ExportBagReport> =>
    verifyExportBag(
      {
        async *entries() {
          yield await Promise.resolve({ kind: 'file', path: PROOF, bytes: size } as const);
        },
        read,
        close: () => Promise.resolve(),
      },
      signer,
    );
  const UNSIGNED = { valid: false, findings: [{ rule_id: 'bundle.proof_unsigned' }] };

  test('is not read further if its first bytes contain no checkpoint', async () => {
    let pieces = 0;
    const report = await verifiedProof(1_000_000, async function* () {
      for (; pieces < 1_000; pieces += 1) yield await Promise.resolve(Buffer.alloc(1_000, ' '));
    });
    expect(report).toMatchObject(UNSIGNED);
    expect(pieces).toBeLessThan((3 * CHECKPOINT_CHARACTERS_MAX) / 1_000);
  });

  test.each<readonly [string, string | BagError]>([
    ['is malformed JSON', '{"checkpoint":"\\q"}'],
    ['cannot be read', new BagError({ code: 'BAG_HOSTILE', message: 'gone' })],
  ])('is not signed if it %s', async (_what, content) => {
    const report = await verifiedProof(18, async function* () {
      if (typeof content !== 'string') throw content;
      yield await Promise.resolve(Buffer.from(content));
    });
    expect(report).toMatchObject(UNSIGNED);
  });

  test('is not written if it exceeds the limit for reading', async () => {
    const [hash, size] = ['f'.repeat(64), Buffer.byteLength(`,"${'f'.repeat(64)}"`)];
    const proof = Array.from({ length: Math.ceil(EXPORT_BAG_LIMITS.proof_bytes_max / size) }, () => hash);
    const none: CaseEntries = { slice: { case_id: CASE, head: EMPTY_HEAD }, async *entries() {} };
    const contents = { history: none, proof, artifacts: [], files: [], runs: new Map(), audit_event_ids: [] };
    const [entries, written] = bagLogFiles(contents, json<ExportBundle>(good(), MANIFEST), signer);
    for await (const piece of entries!.content) expect(piece).toBeUndefined();
    const writing = async (): Promise<void> => {
      for await (const piece of written!.content) expect(piece).toBeUndefined();
    };
    await expect(writing()).rejects.toMatchObject({ code: 'BAG_UNWRITABLE' });
  });
});

/** Changes the lines of the log, or the last one. */
const log = (change: (lines: string[]) => string[]): Change => lines(ENTRIES, change);
const lastLine = (change: (line: string) => string): Change => log((l) => l.with(-1, change(l.at(-1)!)));
/** Changes the first line whose entry is of the type. */
const lineOf = (type: Entry['type'], change: (line: string) => string): Change =>
  log((l) => {
    const index = l.findIndex((line) => (JSON.parse(line) as BagEntry).entry.includes(`"type":"${type}"`));
    expect(index).toBeGreaterThan(-1);
    return l.with(index, change(l[index]!));
  });
const inEntry = (change: (entry: string) => string) => (line: string) => {
  const { entry, index } = JSON.parse(line) as BagEntry;
  return canonicalJson({ entry: change(entry), index });
};
const treeOfLine = (line: string): string => (JSON.parse((JSON.parse(line) as BagEntry).entry) as Entry).tree_id;
const proof =
  (change: (proof: BagProof) => object): Change =>
  (files) =>
    withJson(files, PROOF, change(json<BagProof>(files, PROOF)));
const allowed = (line: string): string => line.replaceAll('"outcome":"failure"', '"outcome":"success"');

const CHANGES: readonly (readonly [string, Change, string])[] = [
  ['an event is changed', lines(AUDIT, (l) => l.map(allowed)), 'bundle.not_logged'],
  [
    'an event and its entry are changed',
    all(
      lines(AUDIT, (l) => l.map(allowed)),
      log((l) => l.map(inEntry(allowed))),
    ),
    'bundle.entry_place',
  ],
  ['an entry is left out', log((l) => l.toSpliced(9, 1)), 'bundle.entry_place'],
  ['the last entry of a tree is left out', log((l) => l.slice(0, -1)), 'bundle.proof_differs'],
  [
    'an entry is moved',
    lastLine((line) => {
      const last = JSON.parse(line) as BagEntry;
      return canonicalJson({ ...last, index: last.index + 1 });
    }),
    'bundle.proof_differs',
  ],
  ['two entries are exchanged', log((l) => swapped(l, 4, 5)), 'bundle.entry_place'],
  [
    'two adjacent entries of different trees are exchanged',
    log((l) => {
      const index = l.findIndex((line, n) => n > 0 && treeOfLine(l[n - 1]!) !== treeOfLine(line));
      expect(index).toBeGreaterThan(0);
      return swapped(l, index - 1, index);
    }),
    'bundle.entry_place',
  ],
  ['a line is not an entry', lastLine(inEntry(() => '{}')), 'bundle.entry_malformed'],
  ['a line has white space', lineOf('input', (line) => `${line} `), 'bundle.json_not_canonical'],
  [
    'an entry has white space',
    lineOf(
      'input',
      inEntry((entry) => `${entry} `),
    ),
    'bundle.entry_malformed',
  ],
  [
    'the body of an entry does not match its type',
    lineOf(
      'run_created',
      inEntry((entry) => entry.replace('"run_kind":"', '"run_kind":"no_')),
    ),
    'bundle.entry_malformed',
  ],
  ['the proof has an extra member', proof((p) => ({ ...p, more: 1 })), 'bundle.proof_malformed'],
  ['a hash of the proof is left out', proof((p) => ({ ...p, hashes: p.hashes.slice(1) })), 'bundle.proof_differs'],
  [
    'an artifact is replaced, with its name and its place in the manifest',
    (files) => {
      const [first, ...rest] = json<ExportBundle>(files, MANIFEST).contents.artifacts;
      const [content, hash_sha256] = ['something else', sha256('something else')];
      const ref = { ...first!, hash_sha256, artifact_id: `sha256:${hash_sha256}`, byte_size: content.length };
      return all(
        manifest((m) => (m.contents.artifacts = inOrder([ref, ...rest]))),
        bytes(artifactPath(hash_sha256), content),
      )(without(files, artifactPath(first!.hash_sha256)));
    },
    'bundle.not_logged',
  ],
  [
    'a policy that no tree has pinned is added',
    bytes(`data/policies/lanes-${sha256('lanes: {}')}.yaml`, 'lanes: {}'),
    'bundle.not_logged',
  ],
  [
    'machines that no tree has pinned are added',
    bytes(`data/machines/${sha256('{}')}.json`, '{}'),
    'bundle.not_logged',
  ],
  ...['lanes', 'roles', 'actions'].map(
    (name) =>
      [
        `the ${name} policy of a tree is left out`,
        (files: Files) =>
          Object.fromEntries(Object.entries(files).filter(([path]) => !path.startsWith(`data/policies/${name}-`))),
        'bundle.policy_missing',
      ] as const,
  ),
  [
    'an artifact is left out, with its place in the manifest',
    (files) => {
      const [first] = json<ExportBundle>(files, MANIFEST).contents.artifacts;
      return manifest((m) => m.contents.artifacts.shift())(without(files, artifactPath(first!.hash_sha256)));
    },
    'bundle.not_logged',
  ],
  [
    'an artifact of the log is listed with another kind, too',
    manifest(({ contents }) => {
      contents.artifacts.splice(1, 0, { ...contents.artifacts[0]!, artifact_kind: 'zzz' });
    }),
    'bundle.not_logged',
  ],
  [
    'an event is left out of the manifest and its file',
    all(
      lines(AUDIT, (l) => l.slice(0, -1)),
      manifest((m) => m.audit!.audit_event_ids.pop()),
    ),
    'bundle.not_logged',
  ],
  [
    'the creation of a record is changed',
    lines(RUNS, ([first, ...rest]) => {
      const record = JSON.parse(first!) as { readonly role_id: string };
      return [canonicalJson({ ...record, role_id: `${record.role_id}_x` }), ...rest];
    }),
    'bundle.not_logged',
  ],
];

describe('a bag that was changed and is again a valid BagIt bag', () => {
  test.each(CHANGES)('is rejected if %s, with and without the signature of the key', async (_what, change, rule) => {
    const unsigned = await verified(sealed(change(good())));
    expect([unsigned.valid, unsigned.authentication?.verdict]).toEqual([false, 'unauthenticated']);
    const forged = signedAgain(change(good()));
    const signed = await verified(forged);
    expect([signed.valid, signed.authentication?.verdict]).toEqual([false, 'unauthenticated']);
    expect(rulesOf(signed)).toContain(rule);
    expect((await verified(forged, null)).valid).toBe(false);
  });

  test('is rejected if the proof has white space', async () => {
    const report = await verified(sealed(text(PROOF, (t) => `${t}\n`)(signedAgain(good()))));
    expect([report.valid, report.authentication?.verdict]).toEqual([false, 'unauthenticated']);
    expect(rulesOf(report)).toContain('bundle.proof_malformed');
  });

  test.each([
    ['size', /(Turnpike-Ledger-Size: ).*/],
    ['root', /(Turnpike-Ledger-Root:\s+)\S/],
  ])('is rejected if bag-info.txt names another %s than the checkpoint', async (_what, pattern) => {
    const report = await verified(sealed(info(pattern, '$1z')(good())));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.info_differs']]);
  });

  test.each([
    ['an agent run', `${TREE}.1`],
    ['an agent run in the tree of the export', `${SECOND}.1`],
    ['the root of the export', SECOND],
  ])('S4-77: that names %s as its export run is rejected: bag-info.txt is not signed', async (_which, run_id) => {
    const named = `Turnpike-Run-Id: ${run_id}\nTurnpike-Root-Run-Id: ${run_id.split('.')[0]!}\n`;
    const report = await verified(sealed(info(/Turnpike-Run-Id: .*\nTurnpike-Root-Run-Id: .*\n/, named)(good())));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.request_differs']]);
  });

  test('S4-77: that names another root for its export run is rejected', async () => {
    const report = await verified(sealed(info(/(Turnpike-Root-Run-Id: ).*\n/, `$1${TREE}\n`)(good())));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.info_differs']]);
  });

  test('S4-77: whose log contains no request of the export is rejected', async () => {
    await assembleBundle(await ledgerOf(), requestFor(at('unasked'), { approvals: [] }), { signer });
    expect(rulesOf(await verified(filesOf(at('unasked'))))).toEqual(['bundle.request_differs']);
  });

  test('S4-78: with another reason or kind than was requested, or an approval that did not count, is rejected', async () => {
    const bench = await Bench.open({
      edit: (name, text) =>
        name === 'actions'
          ? `${text}\napprovals:\n  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 5 }\n`
          : text,
    });
    const role = 'ATTORNEY_ADMIN';
    await (await bench.turnpike.startAgent()).end();
    const requested = { actor: 'anna', role, case: 'case-local', reason: 'a request', destination: 'bag' };
    const run = await bench.turnpike.export(requested);
    for (const actor of ['anna', 'berta']) {
      await bench.turnpike.approve({ run: run.run_id, digests: [run.digest!], decision: 'approve', actor, role });
    }
    expect(await run.finished).toMatchObject({ state: 'completed' });
    const owner = readLedgerSigner(homePaths(bench.home).ledgerKey)!;
    const files = filesOf(join(bench.folder, 'bag'));
    expect(await verified(files, owner)).toMatchObject({ valid: true, authentication: { verdict: 'authenticated' } });
    const bundle = json<ExportBundle>(files, MANIFEST);
    // The reason itself is only in the request.
    expect(JSON.stringify(bundle)).not.toContain('a request');
    expect(bundle.export_reason).toBe(`sha256:${sha256('a request')}`);
    const votes = (await bench.entries()).flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'vote' ? [body] : [],
    );
    const [approval] = bundle.approvals!;
    expect(approval).toMatchObject({ approved_by: 'berta', approved_at_utc: votes[1]!.time });
    for (const other of [
      { export_reason: 'a request' },
      { export_reason: 'another' },
      { bundle_kind: 'other' },
      { approvals: [{ ...approval!, approved_by: 'anna', approved_at_utc: votes[0]!.time }] },
      { approvals: [approval!, { approval_type: 'compliance', approved_by: 'carl', approved_at_utc: votes[1]!.time }] },
    ]) {
      const forged = signedAgain(withJson(files, MANIFEST, { ...bundle, ...other }), owner);
      expect(rulesOf(await verified(forged, owner))).toContain('bundle.request_differs');
    }
    await bench.close();
  });
});

describe('a log that the holder of the key has invented for a bag, and signed', () => {
  let entries: readonly Entry[];
  beforeAll(() => {
    const logged = good()[ENTRIES]!.toString().split('\n').slice(0, -1);
    entries = logged.map((line) => JSON.parse((JSON.parse(line) as BagEntry).entry) as Entry);
  });

  /** The verdict about the bag with a log of only these entries, signed; the entries of each tree are chained. */
  async function loggedAgain(files: Files, invented: readonly Entry[]): Promise<readonly [boolean, readonly string[]]> {
    const last = new Map<string, string>();
    const placed = invented.map((entry) => {
      const sealedEntry = sealEntry({ ...entry, prev: last.get(entry.tree_id) ?? NO_PREV });
      last.set(entry.tree_id, sealedEntry.leaf_hash);
      return sealedEntry;
    });
    const { size, root } = extendHead(
      EMPTY_HEAD,
      placed.map(({ leaf_hash }) => leaf_hash),
    );
    const checkpoint = checkpointText({ origin: signer.name, size, root });
    const told = files['bag-info.txt']!.toString()
      .replace(/(Turnpike-Ledger-Size: ).*/, `$1${size}`)
      .replace(/(Turnpike-Ledger-Root:\s+)\S+/, `$1${root}`);
    const changed = all(
      bytes(ENTRIES, placed.map(({ text }, index) => `${canonicalJson({ entry: text, index })}\n`).join('')),
      bytes('bag-info.txt', told),
      proof((p) => ({ ...p, hashes: [], checkpoint })),
    )(files);
    const report = await verified(signedAgain(changed));
    expect(report.authentication?.verdict).toBe(report.valid ? 'authenticated' : 'unauthenticated');
    return [report.valid, rulesOf(report)];
  }

  /** The entries, with the last one that `fits` changed. */
  function changedLast(fits: (entry: Entry) => boolean, change: (entry: Entry) => Entry): readonly Entry[] {
    const index = entries.findLastIndex(fits);
    expect(index).toBeGreaterThan(-1);
    return entries.with(index, change(entries[index]!));
  }

  test('is accepted if everything in it is as the platform writes it', async () => {
    expect(await loggedAgain(good(), entries)).toEqual([true, []]);
  });

  test('is rejected if an entry has a wrong previous hash or skips a sequence number', async () => {
    const skipped = changedLast(
      ({ type }) => type === 'input',
      (entry) => ({ ...entry, seq: entry.seq + 1 }),
    );
    expect(await loggedAgain(good(), skipped)).toEqual([false, ['bundle.entry_place']]);
  });

  test('is rejected if it has a run twice', async () => {
    const birth = entries.find(({ type, body }) => type === 'run_created' && body.run_id === `${TREE}.2`)!;
    const seq = Math.max(...entries.filter(({ tree_id }) => tree_id === TREE).map((entry) => entry.seq)) + 1;
    expect(await loggedAgain(good(), [...entries, { ...birth, seq }])).toEqual([false, ['bundle.not_logged']]);
  });

  test('is rejected if it names a wrong size of a content', async () => {
    const resized = changedLast(
      ({ type, body }) => type === 'input' && body.kind === 'proposal',
      (entry) => {
        const body = entry.body as Extract<Entry['body'], { readonly kind: 'proposal' }>;
        return { ...entry, body: { ...body, payload: { ...body.payload, byte_size: 1 } } } as Entry;
      },
    );
    expect(await loggedAgain(good(), resized)).toEqual([false, ['bundle.not_logged']]);
  });

  test('is rejected if its request is nested without limit', async () => {
    const content = Buffer.from(`{"args":${'['.repeat(100_000)}`);
    const request = artifactRef({ kind: 'request', case_id: CASE, bytes: content });
    let replaced = '';
    const invented = changedLast(
      ({ type, body }) => type === 'input' && body.kind === 'start_run',
      (entry) => {
        const body = entry.body as StartRunInput;
        replaced = body.request.hash_sha256;
        return { ...entry, body: { ...body, request } } as Entry;
      },
    );
    const files = all(
      manifest(({ contents }) => {
        const others = contents.artifacts.filter(({ hash_sha256 }) => hash_sha256 !== replaced);
        contents.artifacts = inOrder([...others, request]);
      }),
      bytes(artifactPath(request.hash_sha256), content),
    )(without(good(), artifactPath(replaced)));
    expect(await loggedAgain(files, invented)).toEqual([false, ['bundle.request_differs']]);
  });
});

test('a limited number of the entries of a log is read, and fewer without a key', async () => {
  const limited = async (limits: Partial<LogLimits>, key: typeof signer | null): Promise<ExportBagReport> => {
    const tree = openBagFolder(at('good'));
    try {
      return await verifyExportBag(tree, key, limits);
    } finally {
      await tree.close();
    }
  };
  const count = good()[ENTRIES]!.toString().split('\n').length - 1;
  const whole = { entries_max: count, untrusted_entries_max: count };
  expect((await limited(whole, signer)).valid).toBe(true);
  expect((await limited(whole, null)).valid).toBe(true);
  expect((await limited({ untrusted_entries_max: 0 }, signer)).valid).toBe(true);
  expect(rulesOf(await limited({ entries_max: count - 1 }, signer))).toEqual(['bundle.limit']);
  expect(rulesOf(await limited({ untrusted_entries_max: count - 1 }, null))).toEqual(['bundle.limit']);
});

test('every rule about proofs is violated by some case', () => {
  const violated = new Set([...CHANGES.map(([, , rule]) => rule), 'bundle.proof_unsigned', 'bundle.request_differs']);
  expect([...violated]).toEqual(expect.arrayContaining([...RULES_OF_PROOFS]));
  expect(Object.keys(EXPORT_BAG_RULES)).toEqual(expect.arrayContaining([...RULES_OF_PROOFS]));
});
