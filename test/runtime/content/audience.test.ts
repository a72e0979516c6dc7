// Which readers get content and which its hash (decision 0035): audiences, requests for approval, and exports.

import { afterEach, describe, expect, test } from '@jest/globals';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { overlayFiles } from '../../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../../src/home/policy/overlay-writer.js';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { isWithheld, type StoredArtifact } from '../../../src/core/contract/artifact-ref.js';
import { CONTENT_READ } from '../../../src/core/contract/run/run-context.js';
import type { LedgerStore, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { OBSERVERS, type Audience } from '../../../src/runtime/content/audience.js';
import { ContentReader } from '../../../src/runtime/content/content-reader.js';
import { withholdByLanes } from '../../../src/runtime/content/lane-withholding.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const SECRET = 'said in confidence';
const CASE = 'case-1';
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
const BERTA = { actor: 'berta', role: 'ATTORNEY_ADMIN' } as const;

let bench: Bench;
afterEach(() => bench.close());

const rule = (name: string): string =>
  `  - { for: ${name}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`;

/** Adds these lines to the lane of tools and records, and requires approvals for these actions. */
const edit =
  (lines: readonly string[], approved: readonly string[] = []): NonNullable<BenchOptions['edit']> =>
  (name, text) => {
    const edited = serviceEdit(name, text);
    if (name === 'actions')
      return approved.length === 0 ? edited : `${edited}\napprovals:\n${approved.map(rule).join('')}`;
    return edited.replace('  - lane_id: CASE_WORK\n', `$&${lines.map((line) => `    ${line}\n`).join('')}`);
  };

const WITHHOLDS = 'withholds_content: true';
const EXPORTS = 'exports_content: true';

const record = (id: string, text: string): string =>
  JSON.stringify(proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id, text } }));

async function open(lines: readonly string[], approved: readonly string[] = []): Promise<void> {
  const { tools, targets } = service();
  bench = await Bench.open({ edit: edit(lines, approved), tools, targets });
}

async function propose(...payloads: readonly string[]): Promise<string> {
  const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, case: CASE, link: 'remote' });
  for (const payload of payloads) await agent.submit(payload);
  return agent.run_id;
}

const now = (): string => new Date(bench.clock.now()).toISOString();

async function pendingApprovals() {
  const found = [];
  for await (const one of bench.turnpike.ledger.approvals(now())) found.push(one);
  return found;
}

const readOnly = (): LedgerStore => openHome(homePaths(bench.home), { readOnly: true }).store;

describe('S4-62: a request that a lane withholds', () => {
  const waiting = async (): Promise<{ readonly run: string; readonly digest: string }> => {
    await open([WITHHOLDS], ['WRITE_RECORD']);
    const run = await propose(record('f-1', SECRET));
    const [{ digest } = { digest: '' }] = await pendingApprovals();
    return { run, digest };
  };
  const readings = async (): Promise<string[]> =>
    (await bench.entries()).flatMap((entry) =>
      entry.type === 'audit_event' && entry.body.outcome_reason === CONTENT_READ ? [entry.body.actor.actor_id] : [],
    );

  test('is listed for everyone by the hash and size of its content', async () => {
    await waiting();
    const [one] = await pendingApprovals();
    expect(one).toMatchObject({
      request: null,
      withheld: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown },
    });
    expect(one?.withheld?.bytes).toBeGreaterThan(SECRET.length);
    expect(JSON.stringify(one)).not.toContain(SECRET);
  });

  test('is shown to a person whose vote on it could count, and the ledger records it', async () => {
    const at = await waiting();
    const request = {
      action: 'WRITE_RECORD',
      args: { target: 'facts', mode: 'append', record: { id: 'f-1', text: SECRET } },
    };
    expect(await bench.turnpike.readRequest({ ...at, ...BERTA })).toEqual(request);
    expect(await readings()).toEqual(['berta']);
  });

  test.each([
    ['a role that the rule does not name', { actor: 'gert', role: 'GOVERNANCE_AGENT' }],
    ['an unknown role', { actor: 'gert', role: 'NO_SUCH_ROLE' }],
    ['the requesting agent', { actor: 'agent', role: 'ATTORNEY_ADMIN' }],
    ['an agent', { actor: 'gert', role: 'CASE_AGENT' }],
    ['a name that looks like the requesting agent', { actor: '\u0430gent', role: 'ATTORNEY_ADMIN' }],
    ['a name that cannot be compared', { actor: 'anna\u{10d4a}', role: 'ATTORNEY_ADMIN' }],
  ])('is not shown to %s, and nothing is recorded', async (_who, person) => {
    const at = await waiting();
    expect(await bench.turnpike.readRequest({ ...at, ...person })).toBeNull();
    expect(await readings()).toEqual([]);
  });

  test.each(['suspended', 'under an overlay that cannot be trusted'])(
    'is not shown to an approver who is %s',
    async (how) => {
      const at = await waiting();
      const paths = homePaths(bench.home);
      const rules = (_: unknown, epoch: number) => [
        { rule_id: `deny-${epoch}`, reason: 'A stolen key.', actor_id: 'BERTA' },
      ];
      await writeOverlay(overlayFiles(paths.overlay, paths.keys), { issued_at_utc: '2026-01-05T09:00:00.000Z', rules });
      if (how !== 'suspended') appendFileSync(paths.overlay, ' ');
      expect(await bench.turnpike.readRequest({ ...at, ...BERTA })).toBeNull();
      expect(await readings()).toEqual([]);
    },
  );

  test('is not shown under the digest of another request', async () => {
    const { run } = await waiting();
    expect(await bench.turnpike.readRequest({ run, digest: 'f'.repeat(64), ...BERTA })).toBeNull();
  });

  test('is not readable by the place of its content either', async () => {
    const { run } = await waiting();
    for await (const entry of bench.turnpike.ledger.tree(run.split('.')[0] ?? '')) {
      for (const artifact of await bench.turnpike.ledger.artifactsOf(entry)) {
        if (artifact.case_id === null) continue;
        expect(isWithheld(artifact)).toBe(true);
        const at = { log_index: entry.log_index, sha256: isWithheld(artifact) ? artifact.sha256 : '' };
        expect(await bench.turnpike.readContent({ ...at, ...BERTA })).toBeNull();
      }
    }
    expect(await readings()).toEqual([]);
  });
});

test('D7: a request with another digest is not shown with it', async () => {
  await open([], ['WRITE_RECORD']);
  const run = await propose(record('f-1', 'harmless'), record('f-2', 'what is really asked'));
  const payloads: { readonly seq: number; readonly hash: string }[] = [];
  const root = run.split('.')[0] ?? '';
  for await (const { seq, text } of bench.turnpike.ledger.tree(root)) {
    const { body } = JSON.parse(text) as { readonly body: { kind?: string; payload?: { hash_sha256: string } } };
    if (body.kind === 'proposal' && body.payload !== undefined) payloads.push({ seq, hash: body.payload.hash_sha256 });
  }
  const [harmless, real] = payloads;
  const store = new ForwardingStore(readOnly());
  const lied = ({ text, ...entry }: TreeEntry): TreeEntry => ({
    ...entry,
    text: entry.seq === real?.seq ? text.replaceAll(real.hash, harmless?.hash ?? '') : text,
  });
  // The index of requests reads trees entry by entry, and the approvals are folded from complete histories.
  store.tree = async function* (tree_id, fromSeq) {
    for await (const entry of store.inner.tree(tree_id, fromSeq)) yield lied(entry);
  };
  store.artifactsOf = (place) =>
    store.inner.artifactsOf(place.seq === real?.seq ? { tree_id: place.tree_id, seq: harmless?.seq ?? 0 } : place);
  const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
  const shown: unknown[] = [];
  for await (const { request } of reader.approvals(now())) shown.push(request);
  await store.close();
  expect(shown).toEqual([expect.objectContaining({ action: 'WRITE_RECORD' }), null]);
});

describe('S4-62: a pinned policy that cannot be read', () => {
  test('withholds all content of its tree', async () => {
    await open([]);
    const run = await propose(record('f-1', SECRET));
    const tree_id = run.split('.')[0] ?? '';
    const store = new ForwardingStore(readOnly());
    const unreadable = (artifacts: readonly StoredArtifact[]): readonly StoredArtifact[] =>
      artifacts.map((one) =>
        one.kind === 'policy' && !isWithheld(one) ? { ...one, bytes: Buffer.from('no: policy') } : one,
      );
    store.artifactsOf = async (place) => {
      const artifacts = await store.inner.artifactsOf(place);
      return place.seq === 0 ? unreadable(artifacts) : artifacts;
    };
    const withheld: boolean[] = [];
    const source = withholdByLanes(store);
    for await (const entry of source.log()) {
      const artifacts = await source.artifactsOf(entry);
      for (const one of artifacts) if (one.case_id !== null) withheld.push(isWithheld(one));
    }
    for await (const entry of store.tree(tree_id)) {
      for (const one of await new ContentReader(store).read(entry, OBSERVERS)) {
        if (one.case_id !== null) withheld.push(isWithheld(one));
      }
    }
    await store.close();
    expect(withheld.length).toBeGreaterThan(2);
    expect(withheld).not.toContain(false);
  });
});

test('S4-62: an audience that was made elsewhere reads no content', async () => {
  await open([WITHHOLDS]);
  await propose(record('f-1', SECRET));
  const store = readOnly();
  const reader = new ContentReader(store);
  for (const forged of [{}, { kind: 'export', case_id: CASE }, { ...OBSERVERS }, structuredClone(OBSERVERS)]) {
    const read = reader.read({ tree_id: 'run_a', seq: 0 }, forged as unknown as Audience);
    await expect(read).rejects.toThrow(/audience/);
  }
  await store.close();
});

describe('S4-62 C84: an export of content that a lane withholds', () => {
  const exported = async (approver: typeof BERTA | null) => {
    const destination = join(bench.folder, 'bag');
    const run = await bench.turnpike.export({ ...ANNA, case: CASE, reason: 'a request', destination });
    if (approver !== null && run.digest !== null) {
      await bench.turnpike.approve({ run: run.run_id, digests: [run.digest], decision: 'approve', ...approver });
    }
    const { state, reason } = await run.finished;
    return [state, reason, existsSync(destination)];
  };

  test('is denied unless the lane permits exports of it', async () => {
    await open([WITHHOLDS], ['export']);
    await propose(record('f-1', SECRET));
    expect(await exported(BERTA)).toEqual(['denied', 'export.content_withheld', false]);
  });

  test('is made if the lane permits it and people have approved it', async () => {
    await open([WITHHOLDS, EXPORTS], ['export']);
    await propose(record('f-1', SECRET));
    expect(await exported(BERTA)).toEqual(['completed', 'completed', true]);
  });

  test('is made as before if no lane withholds content', async () => {
    await open([]);
    await propose(record('f-1', SECRET));
    expect(await exported(null)).toEqual(['completed', 'completed', true]);
  });

  test('names the lanes of exported withheld content in its request, and contains none of other lanes', async () => {
    await open([WITHHOLDS, EXPORTS], ['export']);
    await propose(record('f-1', SECRET));
    const destination = join(bench.folder, 'bag');
    const run = await bench.turnpike.export({ ...ANNA, case: CASE, reason: 'a request', destination });
    const [one] = await pendingApprovals();
    expect(one?.request?.args).toMatchObject({ withheld_lanes: ['CASE_WORK'] });
    await bench.turnpike.approve({ run: run.run_id, digests: [run.digest ?? ''], decision: 'approve', ...BERTA });
    await run.finished;
  });
});
