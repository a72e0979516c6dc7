// What must hold at the end of a case: the history of the clients, the ledger, the effects and the heads agree.

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { openPostgresStore } from '../../src/stores/postgres/index.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { EMPTY_HEAD, extendHead } from '../../src/core/ledger/proof/merkle.js';
import type { SharedLedgerStore } from '../../src/engine/ports/ledger/shared-store.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import '../fixtures/declared-features.js';
import { factsOf, type LedgerFacts } from '../crash/ledger-facts.js';
import type { Tally } from '../crash/tally.js';
import type { Cluster } from './cluster.js';
import { QUOTA_BYTES, TOOL_CALLS_MAX } from './contract.js';
import type { History, Operation } from './history.js';
import { deedsOf, journalOf, type Places } from './places.js';

/** How long the workers may take to finish what the faults have left, in ms. */
const SETTLE_MS = 60_000;
/** For one verification: it is not a check of speed, and three of them share a busy machine with other seeds. */
const VERIFY_MS = 300_000;

/** What a check looks at. */
export interface Evidence {
  readonly tally: Tally;
  readonly cluster: Cluster;
  readonly history: History;
  readonly url: string;
  readonly schema: string;
  /** Whether the quota of a case must hold over all workers. */
  readonly isQuotaExact: boolean;
}

/** Waits until the workers have finished everything, and checks. */
export async function checkCluster(evidence: Evidence): Promise<void> {
  const { tally, cluster, url, schema } = evidence;
  await settled(evidence);
  await checkWorkers(tally, cluster);
  const caseKeysDir = `${cluster.places.keys}/case-keys`;
  const store = await openPostgresStore({ url, schema, caseKeysDir, readOnly: true });
  try {
    const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
    const verified = await reader.verify();
    tally.that(verified.ok, () => `verify: ${JSON.stringify(verified)}`);
    if (!verified.ok) return;
    const replayed = await reader.replay();
    tally.that(replayed.ok, () => `replay: ${JSON.stringify(replayed.difference)}`);
    const facts = await factsOf(reader);
    tally.note('entries', facts.entries);
    checkHistory(evidence, facts);
    checkOrder(tally, evidence.history, facts);
    checkEffects(tally, evidence, facts);
    checkLimits(evidence, facts);
    await checkContents(tally, store);
    await checkHeads(tally, cluster.places, store);
    if (tally.violations.length > 0) await saveEvidence(evidence, reader);
  } finally {
    await store.close();
  }
}

/** The server ends with the campaign, so the ledger and the history of the clients are copied into files. */
async function saveEvidence({ cluster, history }: Evidence, reader: LedgerReader): Promise<void> {
  const lines: string[] = [];
  for await (const { text } of reader.log()) lines.push(text);
  writeFileSync(join(cluster.places.folder, 'ledger.jsonl'), lines.join('\n'));
  writeFileSync(join(cluster.places.folder, 'history.json'), JSON.stringify(history, null, 1));
}

/** What is wrong in the database while it is read without a worker: commit numbers and the log follow the trees. */
const ORDER = `SELECT count(*) AS wrong FROM (
  SELECT commit_no <= lag(commit_no) OVER (PARTITION BY tree_id ORDER BY seq) AS falls FROM blocks
  UNION ALL SELECT log_index <= lag(log_index) OVER (PARTITION BY tree_id ORDER BY seq) FROM log) AS f WHERE falls`;
const UNFINISHED = `SELECT (SELECT count(*) FROM leases) AS leases, (SELECT count(*) FROM pending) AS pending`;

async function settled({ tally, cluster }: Evidence): Promise<void> {
  await cluster.ready();
  let left = 'unknown';
  const end = Date.now() + SETTLE_MS;
  while (Date.now() < end) {
    await pause(250);
    const [row] = await cluster.query(UNFINISHED).catch(() => []);
    left = row === undefined ? 'unknown' : `${String(row['leases'])} leases, ${String(row['pending'])} pending appends`;
    if (left === '0 leases, 0 pending appends') break;
  }
  tally.that(left.startsWith('0 leases, 0'), () => `after ${SETTLE_MS} ms there are still ${left}`);
  const [row] = await cluster.query(ORDER);
  tally.that(Number(row?.['wrong']) === 0, () => `${String(row?.['wrong'])} appends are numbered in the wrong order`);
}

/** Each worker verifies the ledger, against the head file of its own. */
async function checkWorkers(tally: Tally, cluster: Cluster): Promise<void> {
  for (const worker of cluster.workers) {
    const answer = await worker.ask('/verify', {}, VERIFY_MS);
    const verdict = answer?.body['verdict'] as { readonly ok?: boolean } | undefined;
    tally.that(verdict?.ok === true, () => `${worker.name} verifies: ${JSON.stringify(answer?.body ?? 'no answer')}`);
  }
}

/** `ok` is recorded once, with that response; `unknown` at most once. */
function checkHistory({ tally, history }: Evidence, facts: LedgerFacts): void {
  const traces = new Map<string, string[]>();
  for (const { run_id, proposal_id, response_sha256 } of facts.traces) {
    const key = `${run_id} ${String(proposal_id)}`;
    traces.set(key, [...(traces.get(key) ?? []), response_sha256]);
  }
  for (const { run_id, input_id, proposal_id, outcome, response } of history.operations) {
    const found = traces.get(`${run_id} ${proposal_id}`) ?? [];
    const fits = outcome === 'ok' ? found.length === 1 : found.length <= 1;
    tally.that(fits, () => `${input_id} of ${run_id} is ${outcome}, and recorded ${found.length} times`);
    if (response === null || found.length !== 1) continue;
    tally.that(sha256(response) === found[0], () => `${input_id} got another response than the recorded one`);
  }
  for (const { run_id, input_id, hasRunEnded } of history.operations) {
    const isFalse = hasRunEnded && facts.records.get(run_id)?.status === 'running';
    tally.that(!isFalse, () => `${input_id} was told that ${run_id} has ended, and the run goes on`);
  }
  for (const { run_id } of history.runs)
    tally.that(facts.created.has(run_id), () => `run ${run_id} was acknowledged, and is not in the ledger`);
  for (const [run_id, results] of facts.results)
    tally.that(results.length === 1, () => `${run_id} has ${results.length} outcomes`);
}

/** What was asked after another answer comes after it in its tree. */
function checkOrder(tally: Tally, { operations }: History, facts: LedgerFacts): void {
  const places = new Map(
    facts.traces.map((trace) => [`${trace.run_id} ${String(trace.proposal_id)}`, trace.log_index]),
  );
  const runs = new Map<string, { readonly operation: Operation; readonly place: number }[]>();
  for (const operation of operations) {
    const place = places.get(`${operation.run_id} ${operation.proposal_id}`);
    if (operation.outcome !== 'ok' || place === undefined) continue;
    runs.set(operation.run_id, [...(runs.get(operation.run_id) ?? []), { operation, place }]);
  }
  for (const all of runs.values()) {
    for (const one of all) {
      const overtaken = all.find(
        (other) => one.operation.answeredAt < other.operation.invokedAt && one.place > other.place,
      );
      tally.that(
        overtaken === undefined,
        () =>
          `${String(overtaken?.operation.input_id)} was asked after ${one.operation.input_id}, and stands before it`,
      );
    }
  }
}

type Verdict = 'none' | 'success' | 'failed' | 'unknown';

/** The run that executed an operation: for a file the db_write run below the first one. */
function verdictOf(facts: LedgerFacts, operation: Operation): { readonly verdict: Verdict; readonly at: number } {
  const trace = facts.traces.find((each) => each.proposal_id === operation.proposal_id);
  const run_id = trace?.mediated_run_id ?? '';
  const run = facts.records.get(`${run_id}.1`) ?? facts.records.get(run_id);
  const at = trace?.log_index ?? 0;
  if (run === undefined) return { verdict: 'none', at };
  if (run.status === 'completed') return { verdict: 'success', at };
  return { verdict: run.error?.error_code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'failed', at };
}

/** The ledger says of no effect the opposite of what has happened, and none has happened twice. */
function checkEffects(tally: Tally, { cluster, history }: Evidence, facts: LedgerFacts): void {
  const deeds = deedsOf(cluster.places);
  const counts = new Map<string, number>();
  for (const { what } of deeds) counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const { tool, key, what } of deeds) {
    const name = facts.records.get(key)?.run_name;
    tally.that(name === tool, () => `${what}: ${tool} has acted under the key ${key}, which is of ${String(name)}`);
  }
  const replaced = new Map<string, Operation[]>();
  for (const operation of history.operations) {
    const { kind, what, case_id, path } = operation;
    if (kind === 'replace')
      replaced.set(`${case_id}/${path}`, [...(replaced.get(`${case_id}/${path}`) ?? []), operation]);
    if (kind !== 'tool' && kind !== 'create') continue;
    const { verdict } = verdictOf(facts, operation);
    tally.note(`${kind} ${verdict}`);
    const count = kind === 'tool' ? (counts.get(what) ?? 0) : contentCount(cluster.places, operation);
    const agrees = verdict === 'unknown' ? count <= 1 : count === Number(verdict === 'success');
    tally.that(agrees, () => `${operation.input_id}: ${kind} happened ${count} times, the ledger says ${verdict}`);
  }
  for (const [path, operations] of replaced) checkReplaced(tally, cluster.places, facts, path, operations);
  checkBegins(tally, cluster.places);
}

/** 1 if the file has the content, 0 without a file, and 2 for another content. */
function contentCount({ sandbox }: Places, { case_id, path, what }: Operation): number {
  const file = join(sandbox, case_id, path ?? '');
  if (!existsSync(file)) return 0;
  return readFileSync(file, 'utf8') === what ? 1 : 2;
}

/** A file that one agent replaces has the content of the last success, or of a later write with an unknown outcome. */
function checkReplaced(
  tally: Tally,
  { sandbox }: Places,
  facts: LedgerFacts,
  path: string,
  operations: readonly Operation[],
): void {
  const writes = operations.map((operation) => ({ what: operation.what, ...verdictOf(facts, operation) }));
  const last = writes.filter(({ verdict }) => verdict === 'success').sort((a, b) => b.at - a.at)[0];
  const possible = writes.filter(({ verdict, at }) => verdict === 'unknown' && at > (last?.at ?? -1));
  const allowed = [...possible, ...(last === undefined ? [] : [last])].map(({ what }) => what);
  const file = join(sandbox, path);
  const found = existsSync(file) ? readFileSync(file, 'utf8') : null;
  const fits = found === null ? last === undefined : allowed.includes(found);
  tally.that(fits, () => `${path} has the content ${String(found)}, and the ledger allows ${allowed.join(' or ')}`);
}

/** An effect begins once, and not after another worker has begun to settle it. */
function checkBegins(tally: Tally, places: Places): void {
  const settled = new Map<string, number>();
  const begun = new Set<string>();
  const lines = journalOf(places);
  for (const line of lines)
    if (line.at === 'settle') settled.set(line.key, Math.min(line.t, settled.get(line.key) ?? Infinity));
  for (const line of lines) {
    if (line.at === 'refused') {
      const isWrong = ['LEDGER_BELOW_HEAD', 'LEDGER_TAMPERED', 'INVARIANT', 'INTERNAL'].includes(line.code);
      tally.note(`refused ${line.code}`);
      tally.that(!isWrong, () => `${line.worker} gave up: ${line.message}`);
    }
    if (line.at !== 'begin') continue;
    tally.that(!begun.has(line.key), () => `the effect of ${line.key} was begun twice, by ${line.worker}`);
    begun.add(line.key);
    const from = settled.get(line.key) ?? Infinity;
    tally.that(
      line.t < from,
      () => `${line.worker} began the effect of ${line.key} ${line.t - from} ms after its settlement`,
    );
  }
  tally.note('effects', begun.size);
  tally.note('settlements', settled.size);
}

/**
 * Neither the quota of a case nor the budget of a tree is exceeded. A write with an unknown outcome is not reserved any
 * more, and may still have happened, so its size may be above the quota.
 */
function checkLimits({ tally, cluster, history, isQuotaExact }: Evidence, facts: LedgerFacts): void {
  const { sandbox } = cluster.places;
  const unknown = new Map<string, number>();
  for (const operation of history.operations) {
    const { kind, case_id, what } = operation;
    if ((kind !== 'create' && kind !== 'replace') || verdictOf(facts, operation).verdict !== 'unknown') continue;
    unknown.set(case_id, (unknown.get(case_id) ?? 0) + what.length);
  }
  for (const case_id of readdirSync(sandbox)) {
    const names = readdirSync(join(sandbox, case_id));
    const bytes = names.reduce((sum, name) => sum + statSync(join(sandbox, case_id, name)).size, 0);
    tally.most('most bytes of a case', bytes);
    tally.that(
      !isQuotaExact || bytes <= QUOTA_BYTES + (unknown.get(case_id) ?? 0),
      () => `${case_id} has ${bytes} bytes, and its quota is ${QUOTA_BYTES}`,
    );
  }
  const calls = new Map<string, number>();
  for (const { run_kind, run_id, parent_run_id } of facts.created.values()) {
    // A call that was denied has not begun, and is not charged.
    if (run_kind !== 'tool_gateway' || facts.records.get(run_id)?.started_at_utc === undefined) continue;
    const agent = parent_run_id ?? run_id;
    calls.set(agent, (calls.get(agent) ?? 0) + 1);
  }
  for (const [run_id, count] of calls)
    tally.that(
      count <= TOOL_CALLS_MAX,
      () => `${run_id} made ${count} tool calls, and its budget is ${TOOL_CALLS_MAX}`,
    );
}

/** Every content can be read with the keys of its case. */
async function checkContents(tally: Tally, store: SharedLedgerStore): Promise<void> {
  let contents = 0;
  try {
    for await (const { tree_id } of store.trees()) {
      for await (const { artifacts } of store.histories([{ tree_id, seq: 0 }])) contents += artifacts.length;
    }
  } catch (error) {
    tally.that(false, () => `a content cannot be read: ${String(error)}`);
  }
  tally.note('contents', contents);
}

/** Each head that a worker has written is a head of the log, and was so when it was written. */
async function checkHeads(tally: Tally, places: Places, store: SharedLedgerStore): Promise<void> {
  const heads = journalOf(places).filter((line) => line.at === 'head');
  const roots = new Map<number, string>(heads.map(({ size }) => [size, '']));
  let head = EMPTY_HEAD;
  for await (const { leaf_hash } of store.log()) {
    head = extendHead(head, [leaf_hash]);
    if (roots.has(head.size)) roots.set(head.size, head.root);
  }
  for (const { size, root, stored, worker } of heads) {
    tally.that(
      size === 0 || roots.get(size) === root,
      () => `the head of ${worker} with ${size} entries is not of this log`,
    );
    tally.that(stored === null || stored >= size, () => `${worker} wrote a head of ${size}, and ${stored} were stored`);
  }
  tally.note('heads', heads.length);
}
