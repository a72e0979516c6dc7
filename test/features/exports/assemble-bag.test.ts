import { afterAll, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { RunRecord } from '../../../src/core/contract/run/run-record.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { leafHash } from '../../../src/core/ledger/proof/merkle.js';
import { readIntegrated } from '../../../src/runtime/ledger/integrated-log.js';
import type { EntryPlace, LedgerStore, StoredEntry, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { settleExportBag } from '../../../src/features/exports/assemble-bag.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { RunRecords } from '../../../src/runtime/ledger/run-records.js';
import { all, content, opening, type Draft } from '../../fixtures/entries.js';
import {
  runCreated,
  CASE,
  FOREIGN,
  FOREIGN_TREE,
  filesOf,
  ledgerOf,
  OTHER,
  payload,
  place,
  readStep,
  requestFor,
  result,
  SECOND,
  STORY,
  auditEvent,
  TREE,
  treeOf,
  verified,
  assembleBundle,
} from './material.js';

const { at, remove } = place();
afterAll(remove);
let count = 0;
const fresh = (suffix = ''): string => at(`b${(count += 1)}${suffix}`);

const code = (name: string): unknown => expect.objectContaining({ code: name });
/** An event that does not change the record of its run. */
const REFUSED = { outcome: 'failure', outcome_reason: 'INVALID_STATE_TRANSITION' } as const;
const linesOf = (bytes: Buffer): readonly unknown[] =>
  bytes
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);

/** A store with some members replaced. */
const altered = (store: LedgerStore, over: Partial<LedgerStore>): LedgerStore =>
  new Proxy(store, {
    get: (target, key) => {
      const value: unknown = Reflect.get(Object.hasOwn(over, key) ? over : target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

describe('S4-76 S4-77: a bag of one case', () => {
  test('C57: contains its artifacts, run records, audit events, policies and machines, and a manifest of them', async () => {
    const store = await ledgerOf();
    const destination = fresh();
    const summary = await assembleBundle(store, requestFor(destination));
    const files = filesOf(destination);
    const [p1, p2, r1, r2, r3] = [payload(1), payload(2), result(1), result(2), result(3)].map(({ bytes }) => bytes);
    const contents = [p1!, p2!, r1!, r2!, r3!, Buffer.from('shared')].map((bytes) => sha256(bytes)).sort();
    const policies = ['actions', 'lanes', 'roles'].map(
      (name) => `data/policies/${name}-${sha256(`${name}: of the tests`)}.yaml`,
    );
    expect(Object.keys(files).filter((path) => path.startsWith('data/'))).toEqual([
      ...contents.map((hash) => `data/artifacts/${hash}`),
      'data/audit.jsonl',
      `data/machines/${sha256('{"machines":"of the tests"}')}.json`,
      'data/manifest.json',
      ...policies,
      'data/runs.jsonl',
    ]);
    for (const hash of contents) expect(sha256(files[`data/artifacts/${hash}`]!)).toBe(hash);
    expect(files[policies[1]!]!.toString()).toBe('lanes: of the tests');

    const manifest = JSON.parse(files['data/manifest.json']!.toString()) as ExportBundle;
    expect(isConforming(ExportBundle, manifest)).toBe(true);
    expect(canonicalJson(manifest)).toBe(files['data/manifest.json']!.toString());
    const { integrity, ...bare } = manifest;
    expect(integrity).toEqual({ manifest_hash_sha256: sha256(canonicalJson(bare)) });
    expect(manifest.contents.artifacts.map(({ hash_sha256, artifact_kind }) => [hash_sha256, artifact_kind])).toEqual(
      [
        ...[p1!, p2!, Buffer.from('shared')].map((bytes) => [sha256(bytes), 'raw_payload']),
        ...[r1!, r2!, r3!, Buffer.from('shared')].map((bytes) => [sha256(bytes), 'result']),
      ].sort((one, other) => (one.join() < other.join() ? -1 : 1)),
    );
    expect(summary).toEqual({
      bundle_id: 'bundle_0001',
      package_locator: basename(destination),
      manifest_hash_sha256: integrity!.manifest_hash_sha256,
      package_hash_sha256: sha256(files['tagmanifest-sha256.txt']!),
      tag_manifest_sha256: sha256(files['tagmanifest-sha256.txt']!),
      artifacts: 6,
      audit_events: manifest.audit!.audit_event_ids.length,
      runs: manifest.audit!.run_ids.length,
      bytes: Object.entries(files).reduce(
        (sum, [path, { length }]) => sum + (path.startsWith('data/') ? length : 0),
        0,
      ),
    });
  });

  test('S4-08 S4-09: has the records and events of the ledger, each as soon as it is complete', async () => {
    const store = await ledgerOf();
    const destination = fresh();
    await assembleBundle(store, requestFor(destination));
    const files = filesOf(destination);
    const records = new Map([TREE, SECOND].map((tree_id) => [tree_id, new RunRecords()]));
    const events: unknown[] = [];
    let last: string[] = [];
    for (const { tree_id, text } of await all(store.log())) {
      const entry = JSON.parse(text) as Parameters<RunRecords['fold']>[0];
      if (!records.has(tree_id)) continue;
      records.get(tree_id)!.fold(entry);
      // The read without a case does not belong to this one, although its tree does.
      if ('run_id' in entry.body && entry.body.run_id === `${TREE}.1.3`) continue;
      if (entry.type === 'audit_event') events.push(entry.body);
      if (entry.type === 'audit_event' || entry.type === 'run_created') {
        last = [...last.filter((run_id) => run_id !== entry.body.run_id), entry.body.run_id];
      }
    }
    expect(linesOf(files['data/audit.jsonl']!)).toEqual(events);
    const runs = linesOf(files['data/runs.jsonl']!) as RunRecord[];
    expect(runs).toEqual(last.map((run_id) => records.get(run_id.split('.')[0]!)!.get(run_id)));
    expect(runs.filter((run) => !isConforming(RunRecord, run))).toEqual([]);
    expect(runs.length).toBe(10);
    const { audit } = JSON.parse(files['data/manifest.json']!.toString()) as ExportBundle;
    expect(audit!.run_ids).toEqual(last);
    expect(audit!.audit_event_ids).toEqual(events.map((event) => (event as { event_id: string }).event_id));
    // The events of both trees, in the order of the log.
    expect(audit!.audit_event_ids.map((id) => id.split(':')[0])).not.toEqual(
      audit!.audit_event_ids.map((id) => id.split(':')[0]).sort(),
    );
  });

  test.each(['folder', 'zip'] as const)('S4-84: contains no byte of another case, as %s', async (format) => {
    const store = await ledgerOf();
    const destination = fresh(format === 'zip' ? '.zip' : '');
    await assembleBundle(store, requestFor(destination, { format }));
    const whole = format === 'zip' ? readFileSync(destination) : Buffer.concat(Object.values(filesOf(destination)));
    for (const word of [FOREIGN, OTHER, FOREIGN_TREE, sha256(payload(1, OTHER).bytes)]) {
      expect(whole.includes(word)).toBe(false);
    }
    expect(whole.includes(CASE)).toBe(true);
    // The ledger contains them all, so the search would find them.
    const ledger = (await all(store.log())).map(({ text }) => text).join();
    for (const word of [OTHER, FOREIGN_TREE]) expect(ledger).toContain(word);
  });

  test.each(['folder', 'zip'] as const)('RFC 8493: verifies, as %s, and describes itself', async (format) => {
    const destination = fresh(format === 'zip' ? '.zip' : '');
    const summary = await assembleBundle(await ledgerOf(), requestFor(destination, { format }));
    expect(await verified(destination)).toMatchObject({
      valid: true,
      findings: [],
      tag_manifest_sha256: summary.tag_manifest_sha256,
      bundle: {
        bundle_id: 'bundle_0001',
        case_id: CASE,
        artifacts: 6,
        runs: 10,
        audit_events: summary.audit_events,
        manifest_hash_sha256: summary.manifest_hash_sha256,
      },
    });
    if (format === 'zip') expect(summary.package_hash_sha256).toBe(sha256(readFileSync(destination)));
  });

  test('the same ledger and request give the same bytes at any destination', async () => {
    const [one, two] = [fresh(), fresh()];
    for (const destination of [one, two]) await assembleBundle(await ledgerOf(), requestFor(destination));
    expect(filesOf(two)).toEqual(filesOf(one));
    const [first, second] = [fresh('.zip'), fresh('.zip')];
    for (const destination of [first, second]) {
      await assembleBundle(await ledgerOf(), requestFor(destination, { format: 'zip' }));
    }
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true);
  });

  test('entries committed during the assembly are not included', async () => {
    const [quiet, busy] = [fresh(), fresh()];
    await assembleBundle(await ledgerOf(), requestFor(quiet));
    const store = memoryStore();
    const scribe = await import('../../fixtures/entries.js').then(({ scribeOf }) => scribeOf(store));
    await scribe.write(store, STORY);
    let n = 100;
    async function* after<Read extends TreeEntry>(read: () => AsyncIterable<Read>): AsyncGenerator<Read> {
      n += 1;
      await scribe.write(store, readStep(TREE, n, payload(n), result(n)));
      yield* read();
    }
    const writing = altered(store, {
      log: (from) => after(() => store.log(from)),
      tree: (tree_id, from) => after(() => store.tree(tree_id, from)),
    });
    await assembleBundle(writing, requestFor(busy));
    // One pass over the log, three over each of the two trees.
    expect(n).toBeGreaterThanOrEqual(107);
    expect(filesOf(busy)).toEqual(filesOf(quiet));
  });
});

describe('a failed assembly leaves no file', () => {
  const nothingAt = (destination: string): void => {
    expect(existsSync(destination)).toBe(false);
    expect(readdirSync(dirname(destination)).filter((name) => name.startsWith('.bag-partial-'))).toEqual([]);
  };
  const refused = async (
    store: LedgerStore,
    error: string,
    over: Parameters<typeof requestFor>[1] = {},
  ): Promise<void> => {
    for (const format of ['folder', 'zip'] as const) {
      const destination = fresh();
      await expect(assembleBundle(store, requestFor(destination, { format, ...over }))).rejects.toEqual(code(error));
      nothingAt(destination);
    }
  };
  /** A store whose entries are changed from the n-th pass over the tree on; the log is read during the first one. */
  const textChanged = (store: LedgerStore, change: (entry: StoredEntry) => StoredEntry, from = 1): LedgerStore => {
    let passes = 0;
    async function* changed(entries: AsyncIterable<StoredEntry>, isTree: boolean): AsyncGenerator<StoredEntry> {
      for await (const entry of entries) {
        if (isTree && entry.tree_id === TREE && entry.seq === 1) passes += 1;
        yield (isTree ? passes : 1) >= from ? change(entry) : entry;
      }
    }
    return altered(store, {
      log: (index) => changed(store.log(index), false),
      tree: (tree_id, seq) => changed(readIntegrated(store.tree(tree_id, seq)), true),
    });
  };
  const seqOf = async (store: LedgerStore, what: (entry: StoredEntry) => boolean): Promise<number> =>
    (await all(store.log())).find(what)!.seq;

  test('S4-77: for content that the store has lost', async () => {
    const store = await ledgerOf();
    const lost = await seqOf(store, ({ text }) => text.includes(sha256(payload(2).bytes)));
    const artifactsOf = async (place: EntryPlace) => (place.seq === lost ? [] : store.artifactsOf(place));
    await refused(altered(store, { artifactsOf }), 'LEDGER_TAMPERED');
  });

  test('S4-77: for content with another hash', async () => {
    const store = await ledgerOf();
    const artifactsOf = async (place: EntryPlace) =>
      (await store.artifactsOf(place)).map((artifact) =>
        artifact.case_id === CASE ? { ...artifact, bytes: Buffer.from('other') } : artifact,
      );
    await refused(altered(store, { artifactsOf }), 'LEDGER_TAMPERED');
  });

  test.each([
    ['in the first pass', 1],
    ['in the pass over the events', 2],
    ['in the pass over the records', 3],
  ])('S4-86: for a changed event in a ledger with an unchanged head, %s', async (_title, from) => {
    const change = (entry: StoredEntry): StoredEntry =>
      entry.type === 'audit_event' && entry.tree_id === TREE
        ? { ...entry, text: entry.text.replace('agent_restricted', 'agent_powerful').replace('"allow"', '"deny"') }
        : entry;
    await refused(textChanged(await ledgerOf(), change, from), 'LEDGER_TAMPERED');
  });

  test.each(['log', 'tree'] as const)('S4-86: for a changed event if only the %s is read', async (where) => {
    const store = await ledgerOf();
    const change = (entry: StoredEntry): StoredEntry => {
      if (entry.type !== 'audit_event' || entry.tree_id !== TREE) return entry;
      const text = entry.text.replace('"allow"', '"deny"');
      return { ...entry, text, leaf_hash: leafHash(text) };
    };
    const changed = textChanged(store, change);
    const log = (from?: number) => changed.log(from);
    const tree = (tree_id: string, from?: number) => changed.tree(tree_id, from);
    await refused(altered(store, where === 'log' ? { log } : { tree }), 'LEDGER_TAMPERED');
  });

  test.each([
    ['its last entry', 1],
    ['its last ten', 10],
    ['all but the first', 1_000],
  ])('S4-86: for a tree that lost %s, in a log that has them', async (_what, count) => {
    const store = await ledgerOf();
    const { length } = await all(store.tree(TREE));
    const isLost = ({ tree_id, seq }: EntryPlace): boolean => tree_id === TREE && seq >= Math.max(1, length - count);
    const tree = async function* (tree_id: string, from?: number) {
      for await (const entry of store.tree(tree_id, from)) if (!isLost(entry)) yield entry;
    };
    await refused(altered(store, { tree }), 'LEDGER_TAMPERED');
    const log = async function* () {
      for await (const entry of store.log()) yield isLost(entry) ? { ...entry, tree_id: FOREIGN_TREE } : entry;
    };
    await refused(altered(store, { tree, log }), 'LEDGER_TAMPERED');
  });

  test('S4-86: for a tree whose last entry differs from that of the log', async () => {
    const store = await ledgerOf();
    const { length } = await all(store.tree(TREE));
    const tree = async function* (tree_id: string, from?: number) {
      for await (const entry of store.tree(tree_id, from)) {
        const text = entry.text.replace('"run_kind":"agent"', '"run_kind":"export"');
        const isLast = tree_id === TREE && entry.seq === length - 1;
        expect(!isLast || text !== entry.text).toBe(true);
        yield isLast ? { ...entry, text, leaf_hash: leafHash(text) } : entry;
      }
    };
    await refused(altered(store, { tree }), 'LEDGER_TAMPERED');
  });

  test('S4-86: for a case of which the store omits a tree', async () => {
    const store = await ledgerOf();
    let lists = 0;
    const treesOf = async (case_id: string) => {
      lists += 1;
      return (await store.treesOf(case_id)).filter(({ tree_id }) => tree_id !== TREE);
    };
    await refused(altered(store, { treesOf }), 'LEDGER_TAMPERED');
    expect(lists).toBeGreaterThan(0);
  });

  test('S4-86: for a changed entry of another case, a missing entry, and a truncated log', async () => {
    const store = await ledgerOf();
    const change = (entry: StoredEntry): StoredEntry =>
      entry.tree_id === FOREIGN_TREE ? { ...entry, text: entry.text.replace('"v1"', '"v2"') } : entry;
    await refused(textChanged(store, change), 'LEDGER_TAMPERED');
    const { size } = await store.head();
    for (const left of [0, 7, size - 1]) {
      const log = async function* () {
        for await (const entry of store.log()) if (entry.log_index !== left) yield entry;
      };
      await refused(altered(store, { log }), 'LEDGER_TAMPERED');
    }
  });

  test('S4-86: for an entry that the store assigns to another tree', async () => {
    const change = (entry: StoredEntry): StoredEntry =>
      entry.tree_id === TREE && entry.seq > 20 ? { ...entry, tree_id: FOREIGN_TREE } : entry;
    await refused(textChanged(await ledgerOf(), change), 'LEDGER_TAMPERED');
  });

  test('S4-84: for an event of the case that references another case', async () => {
    const artifact_ref = {
      artifact_id: 'sha256:x',
      artifact_kind: 'result',
      hash_sha256: '0'.repeat(64),
      case_id: OTHER,
    };
    const target = { target_type: 'artifact', name: 'x', artifact_ref } as const;
    for (const event of [{ target }, { input_artifacts: [artifact_ref] }, { case_id: OTHER }]) {
      await refused(await ledgerOf([...STORY, auditEvent(`${TREE}.1.1`, { ...REFUSED, ...event })]), 'BAG_UNWRITABLE');
    }
  });

  test('for a run whose events have more references than a bag allows', async () => {
    const refs = Array.from({ length: 64 }, (_, i) => ({
      artifact_id: `sha256:${i}`,
      artifact_kind: 'result',
      hash_sha256: String(i).padStart(64, '0'),
    }));
    const events = Array.from({ length: 128 }, () => auditEvent(`${TREE}.1.1`, { ...REFUSED, output_artifacts: refs }));
    // One reference of its own, and one to what it read, exist already.
    await refused(await ledgerOf([...STORY, ...events]), 'BAG_UNWRITABLE');
    const destination = fresh();
    const fits = [...events.slice(1), auditEvent(`${TREE}.1.1`, { ...REFUSED, output_artifacts: refs.slice(2) })];
    await assembleBundle(await ledgerOf([...STORY, ...fits]), requestFor(destination));
    expect(await verified(destination)).toMatchObject({ valid: true, findings: [] });
  });

  test('for an unknown case, a case without content, and an unknown run', async () => {
    await refused(await ledgerOf(), 'USAGE', { case_id: 'case-0009' });
    await refused(await ledgerOf(treeOf(TREE)), 'USAGE', { run_id: TREE });
    await refused(await ledgerOf(), 'USAGE', { run_id: `${SECOND}.9` });
    await refused(await ledgerOf(), 'USAGE', { run_id: `${FOREIGN_TREE}.1` });
    await refused(await ledgerOf([]), 'USAGE');
  });

  test.each([
    ['bundle_id', 'short'],
    ['bundle_id', '../bundle_0001'],
    ['bundle_id', 'bundle 0001'],
    ['case_id', '../x'],
    ['run_id', 'no run'],
    ['root_run_id', ''],
    ['export_reason', 'x'.repeat(401)],
    ['export_reason', '\ud800'],
    ['created_at_utc', '2026-02-03'],
    ['bundle_kind', 'gift'],
    ['approvals', [{ approval_type: 'nobody' }]],
    ['format', 'tar'],
  ])('for a request with %s %j', async (member, value) => {
    const store = await ledgerOf();
    const destination = fresh();
    await expect(assembleBundle(store, { ...requestFor(destination), [member]: value })).rejects.toEqual(code('USAGE'));
    nothingAt(destination);
  });

  test('for a destination that is relative, taken, or in no folder', async () => {
    const store = await ledgerOf();
    await expect(assembleBundle(store, requestFor('bundle'))).rejects.toEqual(code('USAGE'));
    const destination = fresh();
    writeFileSync(destination, 'mine');
    for (const format of ['folder', 'zip'] as const) {
      await expect(assembleBundle(store, requestFor(destination, { format }))).rejects.toEqual(code('BAG_EXISTS'));
      const nowhere = at('nowhere/b');
      await expect(assembleBundle(store, requestFor(nowhere, { format }))).rejects.toEqual(code('BAG_UNWRITABLE'));
    }
    expect(readFileSync(destination, 'utf8')).toBe('mine');
  });
});

describe('S4-79: after a crash', () => {
  test.each(['folder', 'zip'] as const)('a completed bag is found, with the same summary, as %s', async (format) => {
    const request = requestFor(fresh(), { format });
    expect(await settleExportBag(request)).toBeNull();
    const summary = await assembleBundle(await ledgerOf(), request);
    expect(await settleExportBag(request)).toEqual(summary);
  });

  test.each(['folder', 'zip'] as const)('a bag of another request is not taken for it, as %s', async (format) => {
    const request = requestFor(fresh(), { format });
    await assembleBundle(await ledgerOf(), request);
    expect(await settleExportBag({ ...request, bundle_id: 'bundle_0002' })).toBeNull();
    expect(await settleExportBag({ ...request, export_reason: 'another' })).toBeNull();
    expect(await settleExportBag({ ...request, format: format === 'zip' ? 'folder' : 'zip' })).toBeNull();
    expect(await settleExportBag(request)).not.toBeNull();
  });

  test('a claimed and empty name is free again; files of others stay', async () => {
    const request = requestFor(fresh());
    mkdirSync(request.destination);
    expect(await settleExportBag(request)).toBeNull();
    await assembleBundle(await ledgerOf(), request);
    const other = requestFor(fresh());
    mkdirSync(other.destination);
    writeFileSync(`${other.destination}/mine`, 'x');
    expect(await settleExportBag(other)).toBeNull();
    expect(readdirSync(other.destination)).toEqual(['mine']);
    const file = requestFor(fresh('.zip'), { format: 'zip' });
    writeFileSync(file.destination, 'no archive');
    expect(await settleExportBag(file)).toBeNull();
  });

  test('a bag that was changed since is not taken for it', async () => {
    const request = requestFor(fresh());
    await assembleBundle(await ledgerOf(), request);
    writeFileSync(`${request.destination}/data/audit.jsonl`, '');
    expect(await settleExportBag(request)).toBeNull();
  });
});

test('a tree with other pinned policies adds them to the bag', async () => {
  const other = content('policy', 'lanes: of another day', null);
  const open = opening(TREE);
  const changed: Draft = {
    ...open,
    artifacts: [other, ...open.artifacts.slice(1)],
    body: (where) => {
      const body = open.body(where) as unknown as { policies: { lanes: object } };
      const hash = sha256(other.bytes);
      const artifact = { artifact_id: `sha256:${hash}`, artifact_kind: 'policy', hash_sha256: hash, scope: 'system' };
      const policies = { ...body.policies, lanes: { ...body.policies.lanes, sha256: hash, artifact } };
      return { ...body, policies } as never;
    },
  };
  const destination = fresh();
  await assembleBundle(await ledgerOf([changed, ...STORY.slice(1)]), requestFor(destination));
  const files = filesOf(destination);
  expect(files[`data/policies/lanes-${sha256(other.bytes)}.yaml`]?.toString()).toBe('lanes: of another day');
  expect(files[`data/policies/lanes-${sha256('lanes: of the tests')}.yaml`]?.toString()).toBe('lanes: of the tests');
  expect(await verified(destination)).toMatchObject({ valid: true });
});

test('a record names ten thousand of the events of its run, and the bag contains all of them', async () => {
  const many = Array.from({ length: EXPORT_BAG_LIMITS.record_events_max }, () => auditEvent(`${TREE}.1.1`, REFUSED));
  const destination = fresh('.zip');
  const store = await ledgerOf([...STORY, ...many]);
  const { audit_events } = await assembleBundle(store, requestFor(destination, { format: 'zip' }));
  expect(audit_events).toBe(27 + many.length);
  expect(await verified(destination)).toMatchObject({ valid: true, findings: [] });
});

test('S4-03: a run that the ledger has twice is not exported', async () => {
  const twice = runCreated({ run_id: `${TREE}.1.1`, run_kind: 'tool_gateway' });
  const refused = assembleBundle(await ledgerOf([...STORY, twice]), requestFor(fresh()));
  await expect(refused).rejects.toEqual(code('LEDGER_TAMPERED'));
});
