// The data of the inspector routes, for a home directory with many kinds of entries, and for its bundle.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { unpackRows } from '../../../src/interfaces/inspector/contract/event-row.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { SessionAnswer } from '../../../src/features/sessions/contract/session-answer.js';
import { chartsOf } from '../../../src/kernel/replay/machine-chart.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { stateAt } from '../../../src/kernel/replay/state-at.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import type { EntryPlace, StoredEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import { leafHash } from '../../../src/core/ledger/proof/merkle.js';
import { noteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { homeInspectorSource, inspectedBundle } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { ENTRY_BYTES_MAX, ROWS_MAX, type InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { turnpike as command } from '../cli/fake-io.js';
import { example } from '../../docs/built.js';
import { Bench } from '../../fixtures/bench.js';
import type { DecisionExplanation } from '../../../src/core/contract/inspection/inspection.js';
import { proposal } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';

const ANNA = { actor: 'anna', role: 'maintainer' } as const;
const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;

interface Material {
  readonly readSession: () => readonly { readonly payload: string }[];
  readonly readHostile: () => readonly { readonly payload: string }[];
  readonly layOut: (sandbox: string, outside: string | null) => void;
}

let bench: Bench;
let source: InspectorSource;
let bundle: InspectorSource;
let entries: StoredEntry[];
const responses = new Map<string, string[]>();
let session_id: string;
const sessionTimes: { at: number; answer: SessionAnswer }[] = [];

beforeAll(async () => {
  bench = await Bench.open();
  const { turnpike } = bench;
  const { layOut, readHostile, readSession } = await example<Material>('demo/material.mjs');
  for (const [name, proposals] of [['careful', readSession()] as const, ['hostile', readHostile()] as const]) {
    layOut(join(bench.home, 'sandbox', `case-${name}`), name === 'hostile' ? join(bench.folder, 'outside') : null);
    const agent = await turnpike.startAgent({ case: `case-${name}` });
    const given: string[] = [];
    for (const { payload } of proposals) given.push(JSON.stringify(await agent.submit(payload)));
    responses.set(agent.run_id, given);
    await agent.end();
  }
  await workSession();
  const agent = await turnpike.startAgent({ case: 'case-erased' });
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'in confidence' })));
  await agent.end();
  await turnpike.erase({ case: 'case-erased', actor: 'anna' });
  entries = [];
  for await (const entry of turnpike.ledger.log()) entries.push(entry);
  source = homeInspectorSource(turnpike.ledger, turnpike.home);
  const said = await command(bench.folder, ['ledger', 'export', 'bundle', '--home', bench.home]);
  expect(said).toMatchObject({ code: 0 });
  bundle = (await inspectedBundle(join(bench.folder, 'bundle'), null)).source;
}, 120_000);

afterAll(async () => {
  await source.close();
  await bundle.close();
  await bench.close();
});

async function workSession(): Promise<void> {
  const { sessions, ledger } = bench.turnpike;
  const spec = join(ROOT, 'docs/examples/spec.yaml');
  bench.put('notes/before.md', 'x', 'case-book');
  const note = async (answer: SessionAnswer): Promise<SessionAnswer> => {
    sessionTimes.push({ at: (await ledger.head()).size - 1, answer });
    return answer;
  };
  const started = await note(await sessions.start({ spec, case: 'case-book', by: ANNA }));
  session_id = started.data?.session_id ?? '';
  let answer = await note(await sessions.next(session_id, {}, RUNNER));
  for (const path of ['/sandbox/notes/contacts.md', '/sandbox/notes/hours.md']) {
    const { step_id, type, step_proof, task_id, run_id } = answer.data!.next_step!;
    const content = '- a: b\n- c: d\n';
    const made = await bench.turnpike.submit(run_id ?? '', JSON.stringify(proposal('WRITE_FILE', { path, content })));
    expect(made).toMatchObject({ outcome: 'SUCCESS' });
    const report = { step_id, step_type: type, outcome: 'success', step_proof, task_id, files_touched: [path] };
    answer = await note(await sessions.next(session_id, { last_step_result: report }, RUNNER));
  }
}

const entryOf = ({ text }: StoredEntry): Entry => JSON.parse(text) as Entry;
const runs = (): string[] =>
  entries.flatMap((stored) => {
    const entry = entryOf(stored);
    return entry.type === 'run_created' ? [entry.body.run_id] : [];
  });
const steps = () =>
  entries.flatMap((stored) => {
    const entry = entryOf(stored);
    return entry.type === 'step_trace' ? [{ ...entry.body, log_index: stored.log_index }] : [];
  });
const isErased = (run_id: string): boolean =>
  entries.some((stored) => stored.text.includes('"case_id":"case-erased"') && stored.text.includes(`"${run_id}"`));

describe('a home directory', () => {
  test('U-05: returns the identity of the ledger, and what verifies it', async () => {
    const info = await source.info();
    const key = noteVerifier(info.key ?? '');
    expect(key).not.toBeNull();
    expect(info).toMatchObject({ begin: 0, frontier: [], live: true, title: 'home', size: entries.length });
    expect(info.ledger_id).toBe(sha256(`${info.key ?? ''}\n${entries[0]!.leaf_hash}`));
    expect(info.checkpoint?.split('\n').slice(0, 2)).toEqual([key!.name, String(entries.length)]);
    expect(await source.size()).toBe(entries.length);
  });

  test('U-05: has a row for every entry, in consecutive pages', async () => {
    const rows = [];
    for (let from = 0; from < entries.length; from += 77) rows.push(...unpackRows(await source.rows(from, from + 77)));
    expect(rows.map(({ log_index, hash }) => `${log_index} ${hash}`)).toEqual(
      entries.map(({ log_index, leaf_hash }) => `${log_index} ${leaf_hash.slice(0, 8)}`),
    );
    expect((await source.rows(0, 1e9)).rows).toHaveLength(Math.min(entries.length, ROWS_MAX));
    expect((await source.rows(entries.length, entries.length + 5)).rows).toEqual([]);
    expect(await source.rows(3, 9)).toBe(await source.rows(3, 9));
  });

  test('U-05: returns the exact texts, which have the recorded hashes', async () => {
    const texts: string[] = [];
    while (texts.length < entries.length) texts.push(...(await source.entries(texts.length, entries.length)));
    expect(texts.map(leafHash)).toEqual(entries.map(({ leaf_hash }) => leaf_hash));
    const [first] = await source.entries(0, 1e6);
    expect(Buffer.byteLength((await source.entries(0, 1e6)).join('\n'))).toBeLessThanOrEqual(ENTRY_BYTES_MAX);
    expect(first).toBe(entries[0]!.text);
    expect(await source.entries(9, 9)).toEqual([]);
  });

  test('U-05: shows an entry with the content that it attached, and no other content', async () => {
    const { log_index } = entries.find(({ text }) => text.includes('"kind":"proposal"'))!;
    const details = (await source.event(log_index))!;
    expect(details).toMatchObject({ log_index, text: entries[log_index]!.text });
    const [payload] = details.artifacts;
    expect(payload).toMatchObject({ kind: 'raw_payload', case_id: 'case-careful', withheld: null });
    const bytes = await source.artifact(log_index, payload!.sha256);
    expect(sha256(bytes!)).toBe(payload!.sha256);
    expect(await source.artifact(log_index + 1, payload!.sha256)).toBeNull();
    expect(await source.event(entries.length)).toBeNull();
  });

  test('U-05: every run has a course that ends in its present state, on a recorded chart', async () => {
    const state = await stateAt(storeOf(bench.turnpike.ledger), null, { until: entries.length - 1 });
    for (const { run_id, at, state: stands } of state.runs.filter((run) => !isErased(run.run_id))) {
      const course = (await source.course(run_id, 0))!;
      expect(course).toMatchObject({ run_id, cut: null, through: entries.length });
      const last = course.moves.findLast(([, step]) => step === 0);
      const rests = course.states[last?.[3] ?? -1] ?? '';
      expect(rests).toBe(at ?? stands);
      const chart = (await source.chart(course.chart))!;
      expect(chart.hash).toBe(course.chart);
      expect(course.edges.every((id) => /^(?:\w|\.)*\|\w+\|\d+$/.test(id))).toBe(true);
    }
    const own = (await source.course(session_id, 0))!;
    expect((await source.chart(own.chart))?.machine).toBe('session');
    expect(await source.course('run_nobody', 0)).toBeNull();
    expect(await source.chart('0'.repeat(64))).toBeNull();
  });

  test('U-05: a chart shows the recorded definitions', async () => {
    const opening = (await source.event(0))!;
    const machines = opening.artifacts.find(({ kind }) => kind === 'machines')!;
    const definitions = JSON.parse(Buffer.from((await source.artifact(0, machines.sha256))!).toString()) as JsonObject;
    for (const recorded of chartsOf(definitions)) expect(await source.chart(recorded.hash)).toMatchObject(recorded);
  });

  test('U-05: every step has its proposal, its trace, its decision and the exact bytes of its response', async () => {
    let decided = 0;
    for (const { run_id, step_index, log_index, mediated_run_id } of steps().filter((one) => !isErased(one.run_id))) {
      const story = (await source.step(run_id, step_index))!;
      expect(story).toMatchObject({ run_id, step: step_index, trace: log_index });
      expect(entries[story.proposal]!.text).toContain('"kind":"proposal"');
      const given = responses.get(run_id)?.[step_index - 1];
      if (given !== undefined) expect(JSON.stringify(JSON.parse(story.response!))).toBe(given);
      const decision = entryOf(entries[story.decision!]!);
      if (mediated_run_id !== null) {
        expect(decision.body).toMatchObject({ action_type: 'authz_decision', run_id: mediated_run_id });
        decided += 1;
      } else expect(story.decision).toBe(log_index);
    }
    expect(decided).toBeGreaterThan(20);
    const { run_id } = steps()[0]!;
    expect([await source.step(run_id, 999), await source.step('run_nobody', 1)]).toEqual([null, null]);
  }, 120_000);

  test('U-05: explains a decision with its checks in order, and the changes that would flip it', async () => {
    const denied = steps().find(({ rule_id }) => rule_id === 'extension.not_allowed')!;
    const story = (await source.step(denied.run_id, denied.step_index))!;
    const why = (await source.why(story.decision!))!;
    expect(why).toMatchObject({ log_index: story.decision, decision: 'deny', rule_id: 'extension.not_allowed' });
    const at = why.checks.findIndex(({ passed }) => passed === false);
    expect(why.checks[at]?.detail).toMatch(/^extension\.not_allowed \(actions\.yaml:\d+\)$/);
    expect(why.checks.slice(0, at).every(({ passed }) => passed === true)).toBe(true);
    expect(why.checks.slice(at + 1).every(({ passed }) => passed === null)).toBe(true);
    expect(why.changes[0]?.text).toMatch(/would have to allow the ending/);
    expect(await source.why(entries.length)).toBeNull();
    // The explanations of a whole tree are the same.
    const { tree_id } = entries[story.decision!]!;
    const told: DecisionExplanation[] = [];
    for await (const one of source.whys(tree_id)) told.push(one);
    const recorded = entries.filter((entry) => entry.tree_id === tree_id && entry.text.includes('"authz_decision"'));
    expect(told.map(({ log_index }) => log_index)).toEqual(
      expect.arrayContaining(recorded.map(({ log_index }) => log_index)),
    );
    for (let n = 0; n < told.length; n += 17) expect(await source.why(told[n]!.log_index)).toEqual(told[n]);
  }, 120_000);

  test('counts how often each element of policy decided', async () => {
    const all = await source.coverage(0, entries.length);
    const decided = ({ policies }: typeof all) => policies.reduce((sum, { decisions }) => sum + decisions, 0);
    const half = Math.floor(entries.length / 2);
    const [first, second] = [await source.coverage(0, half), await source.coverage(half, entries.length)];
    expect(decided(all)).toBeGreaterThan(20);
    expect(decided(first) + decided(second)).toBe(decided(all));
    const elements = all.policies.flatMap((policy) => policy.elements);
    expect(elements).toContainEqual(expect.objectContaining({ kind: 'grant', name: 'action WRITE_FILE' }));
    expect(elements.some(({ allowed, denied }) => allowed + denied === 0)).toBe(true);
    expect(await bundle.coverage(0, entries.length)).toEqual(all);
  });

  test('S3-06: shows a session after every entry, and at present', async () => {
    const counts = [];
    for (const { at, answer } of [...sessionTimes, ...sessionTimes.toReversed()]) {
      const view = (await source.session(session_id, at))!;
      expect(view).toMatchObject({ session_id, at, status: answer.data!.status, posture: 'supervised' });
      expect(view.outstanding?.step_id ?? null).toBe(answer.data!.next_step?.step_id ?? null);
      counts.push(view.phases.flatMap(({ tasks }) => tasks).filter(({ state }) => state === 'completed').length);
    }
    expect(counts).toEqual([0, 0, 1, 2, 2, 1, 0, 0]);
    const now = (await source.session(session_id, null))!;
    expect(now.phases.map(({ id, state, gate }) => [id, state, gate?.state])).toEqual([
      ['collect', 'current', 'pending'],
      ['write', 'open', 'pending'],
      ['publish', 'open', 'pending'],
    ]);
    const proofs = sessionTimes.flatMap(({ answer }) => answer.data?.next_step?.step_proof ?? []);
    expect(proofs.length).toBeGreaterThan(2);
    for (const proof of proofs) expect(JSON.stringify(now)).not.toContain(proof);
    const before = entries.find(({ tree_id }) => tree_id === session_id)!.log_index - 1;
    expect(await source.session(session_id, before)).toBeNull();
    expect([await source.session('ses_nobody', null), await source.session(runs()[0]!, null)]).toEqual([null, null]);
  }, 120_000);
});

/** The reader as a source of time travel. */
const storeOf = (reader: LedgerReader) => ({
  log: (from?: number) => reader.log(from),
  tree: (tree_id: string, from?: number) => reader.tree(tree_id, from),
  artifactsOf: (place: EntryPlace) => reader.artifactsOf(place),
});

describe('erased content', () => {
  test('D14: entries report the erasure, and runs show what the entries alone contain', async () => {
    const gone = entries.filter(({ text }) => text.includes('"case_id":"case-erased"'));
    const [proposed] = gone.filter(({ text }) => text.includes('"kind":"proposal"'));
    const details = (await source.event(proposed!.log_index))!;
    expect(details.artifacts).toMatchObject([{ withheld: 'erased', kind: 'raw_payload' }]);
    expect(await source.artifact(proposed!.log_index, details.artifacts[0]!.sha256)).toBeNull();
    const { run_id } = entryOf(proposed!).body as { run_id: string };
    const course = (await source.course(run_id, 0))!;
    expect(course).toMatchObject({ cut: { log_index: proposed!.log_index, why: 'withheld' }, steps: [] });
    expect(course.chart).toMatch(/^[0-9a-f]{64}$/);
    const story = (await source.step(run_id, 1))!;
    expect(story).toMatchObject({ proposal: proposed!.log_index, trace: expect.any(Number), response: null });
    expect(entryOf(entries[story.decision!]!).body).toMatchObject({ action_type: 'authz_decision', outcome: 'allow' });
    await expect(source.why(story.decision!)).rejects.toMatchObject({ code: 'LEDGER_ERASED' });
    const child = runs().find((id) => id.startsWith(`${run_id}.`))!;
    expect(await source.course(child, 0)).toMatchObject({ moves: [], cut: { why: 'withheld' } });
  });
});

describe('a bundle', () => {
  test('U-05: returns the same data as the home directory that it came from', async () => {
    const [home, away] = [await source.info(), await bundle.info()];
    expect(home.approvals).toBe(true);
    expect(away).toEqual({ ...home, live: false, approvals: false, title: 'bundle', replayed: null });
    expect(await bundle.replayed()).toMatchObject({ verdict: 'by_hash_alone' });
    expect(await source.replayed()).toBeNull();
    expect((await bundle.info()).replayed).toEqual(await bundle.replayed());
    expect(await bundle.rows(0, 1e9)).toEqual(await source.rows(0, 1e9));
    expect(await bundle.entries(0, 1e9)).toEqual(await source.entries(0, 1e9));
    for (let n = 0; n < entries.length; n += 13) expect(await bundle.event(n)).toEqual(await source.event(n));
    for (const run_id of [...runs(), session_id])
      expect(await bundle.course(run_id, 0)).toEqual(await source.course(run_id, 0));
    for (const { run_id, step_index } of steps().filter((_, n) => n % 7 === 0))
      expect(await bundle.step(run_id, step_index)).toEqual(await source.step(run_id, step_index));
    const { chart } = (await source.course(session_id, 0))!;
    expect(await bundle.chart(chart)).toEqual(await source.chart(chart));
    for (const at of [null, sessionTimes[1]!.at])
      expect(await bundle.session(session_id, at)).toEqual(await source.session(session_id, at));
    const decision = steps().find(({ rule_id }) => rule_id === 'extension.not_allowed')!.log_index;
    expect(await bundle.why(decision)).toEqual(await source.why(decision));
  }, 120_000);

  test('is accepted only with the key that signed it', async () => {
    const file = join(bench.folder, 'bundle');
    const { key } = await source.info();
    const opened = await inspectedBundle(file, noteVerifier(key ?? ''));
    expect([opened.flaw, (await opened.source.info()).key]).toEqual([null, key]);
    await opened.source.close();
    const other = await Bench.open();
    const { key: stranger } = await homeInspectorSource(other.turnpike.ledger, other.turnpike.home).info();
    await other.turnpike.close();
    rmSync(other.folder, { recursive: true });
    const refused = await inspectedBundle(file, noteVerifier(stranger ?? ''));
    expect(refused.flaw).toContain('not a complete evidence bundle');
    await refused.source.close();
    await expect(inspectedBundle(join(bench.folder, 'nothing'), null)).rejects.toMatchObject({ code: 'USAGE' });
  });
});

test('follows an active run: its course grows, and a step in flight has no trace yet', async () => {
  const agent = await bench.turnpike.startAgent({ case: 'case-live' });
  const first = (await source.course(agent.run_id, 0))!;
  expect(first.moves.length).toBeGreaterThan(0);
  await agent.submit(JSON.stringify(proposal('THINK', {})));
  const more = (await source.course(agent.run_id, first.through))!;
  expect(more.moves.filter(([, step]) => step === 1).length).toBeGreaterThan(5);
  expect(more.moves.every(([log_index]) => log_index >= first.through)).toBe(true);
  expect(more.steps).toHaveLength(1);
  await agent.end();
});

test('shows neither withheld content nor a response that contains it', async () => {
  const edit = (name: string, text: string): string =>
    name === 'lanes' ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n') : text;
  const other = await Bench.open({ edit });
  const looked = homeInspectorSource(other.turnpike.ledger, other.turnpike.home);
  const agent = await other.turnpike.startAgent({ case: 'case-kept' });
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'in confidence' })));
  await agent.end();
  const course = (await looked.course(agent.run_id, 0))!;
  expect(course).toMatchObject({ cut: null });
  const details = (await looked.event(course.steps[0]!))!;
  expect(details.artifacts).toMatchObject([{ kind: 'raw_payload', withheld: 'lane' }]);
  expect(await looked.artifact(course.steps[0]!, details.artifacts[0]!.sha256)).toBeNull();
  expect(await looked.step(agent.run_id, 1)).toMatchObject({ response: null, trace: expect.any(Number) });
  expect((await looked.event(0))?.artifacts.map(({ withheld }) => withheld)).toEqual([null, null, null, null]);
  await looked.close();
  await other.close();
});

test('reports archived entries as archived, and shows the others', async () => {
  const other = await Bench.open();
  for (let n = 0; n < 2; n += 1) {
    const agent = await other.turnpike.startAgent({ case: 'case-old' });
    await agent.submit(JSON.stringify(proposal('THINK', {})));
    await agent.end();
  }
  await other.turnpike.close();
  const said = await command(other.folder, ['ledger', 'archive', 'old', '--home', other.home]);
  expect(said).toMatchObject({ code: 0 });
  const { store, externalHeadStore } = openHome(homePaths(other.home), { readOnly: true });
  const looked = homeInspectorSource(new LedgerReader(store, externalHeadStore), homePaths(other.home));
  const info = await looked.info();
  expect(info.begin).toBeGreaterThan(10);
  // The run that records the archive follows its boundary.
  expect(info.size).toBeGreaterThan(info.begin);
  expect(info).toMatchObject({ frontier: expect.arrayContaining([expect.any(String)]) });
  await expect(looked.rows(0, 5)).rejects.toMatchObject({ code: 'LEDGER_ARCHIVED' });
  await expect(looked.event(3)).rejects.toMatchObject({ code: 'LEDGER_ARCHIVED' });
  await expect(looked.course(`run_${'1'.padStart(21, '0')}`, 0)).rejects.toMatchObject({ code: 'LEDGER_ARCHIVED' });
  await looked.close();
  await store.close();
  rmSync(other.folder, { recursive: true });
});
