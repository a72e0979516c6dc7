// What the library returns to its callers: every member of a Turnpike and of its ledger reader, the exporters, the MCP
// server, and XState's inspectors. The members are read from the objects: a new one fails the walk until it is listed.

import { inspect } from 'node:util';
import type { InspectionEvent } from 'xstate';
import { inspectionHub } from '../../src/interfaces/inspector/xstate/inspection-hub.js';
import { statelyObserver } from '../../src/interfaces/inspector/xstate/stately-observer.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { watchLedger } from '../../src/runtime/ledger/watch-ledger.js';
import { renderOneFile } from '../../src/interfaces/inspector/render-one-file.js';
import { homeInspectorSource } from '../../src/interfaces/inspector/ledger-inspector-source.js';
import { createOffer } from '../../src/interfaces/mcp/offer.js';
import { clientOf, serviceOn } from '../interfaces/mcp/mcp-harness.js';
import type { Output } from './canary-http.js';
import { CASE, type CanaryWorld } from './canary-world.js';

/** Everything that a value contains: its members at any depth, and bytes unchanged. */
export const shown = (value: unknown): string =>
  inspect(value, { depth: 40, maxArrayLength: null, maxStringLength: null, getters: true, showHidden: false }) +
  bytesIn(value).join('\n');

function bytesIn(value: unknown, seen = new Set<unknown>()): string[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  if (ArrayBuffer.isView(value))
    return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1')];
  const members = value instanceof Map || value instanceof Set ? [...value.values()] : Object.values(value);
  return members.flatMap((member) => bytesIn(member, seen));
}

type Read = (world: CanaryWorld) => AsyncIterable<unknown> | Promise<unknown>;

async function collected(read: ReturnType<Read>): Promise<string> {
  if (!(Symbol.asyncIterator in read)) return shown(await read.catch((error: unknown) => error));
  const found: string[] = [];
  for await (const one of read) found.push(shown(one));
  return found.join('\n');
}

const NOW = (): string => new Date().toISOString();
const OLGA = { actor: 'olga', role: 'GOVERNANCE_AGENT' } as const;
const IN_TREE = 'for code that folds: test/content-access.test.ts lists who takes it';

/** The result of each member of the reader. */
const OF_READER: Readonly<Record<string, Read | string>> = {
  trees: ({ bench }) => bench.turnpike.ledger.trees(),
  treesAfter: ({ bench }) => bench.turnpike.ledger.treesAfter(-1),
  size: ({ bench }) => bench.turnpike.ledger.size(),
  inputContent: ({ asked, bench }) => bench.turnpike.ledger.inputContent(asked[0]?.run_id ?? '', 'none'),
  committed: ({ asked, bench }) =>
    bench.turnpike.ledger.committed([{ tree_id: asked[0]?.run_id ?? '', input_id: 'none' }]),
  recordedProposal: ({ asked, bench }) => bench.turnpike.ledger.recordedProposal(asked[0]?.run_id ?? '', 'none'),
  treeOf: ({ asked, bench }) => bench.turnpike.ledger.treeOf(asked[0]?.run_id ?? ''),
  run: ({ asked, bench }) => bench.turnpike.ledger.run(asked[0]?.run_id ?? ''),
  approvals: ({ bench }) => bench.turnpike.ledger.approvals(NOW()),
  approval: ({ bench, asked }) =>
    Promise.all(asked.flatMap((one) => [null, OLGA].map((by) => bench.turnpike.ledger.approval(one, NOW(), by)))),
  entries: ({ bench, sessions }) => bench.turnpike.ledger.entries(sessions[0] ?? ''),
  log: ({ bench }) => bench.turnpike.ledger.log(),
  tree: ({ bench, sessions }) => bench.turnpike.ledger.tree(sessions[0] ?? ''),
  runTree: ({ bench }) => runTrees(bench.turnpike.ledger),
  countApprovals: ({ bench }) => bench.turnpike.ledger.countApprovals(new Date(0).toISOString()),
  head: ({ bench }) => bench.turnpike.ledger.head(),
  begin: ({ bench }) => bench.turnpike.ledger.begin(),
  anchored: ({ bench }) => bench.turnpike.ledger.anchored(),
  summaries: ({ bench }) => bench.turnpike.ledger.summaries(),
  openings: ({ bench }) => bench.turnpike.ledger.openings(),
  systemArtifact: (world) => systemArtifacts(world),
  artifactsOf: ({ bench }) => artifacts(bench.turnpike.ledger),
  folded: IN_TREE,
  verify: ({ bench }) => bench.turnpike.ledger.verify(),
  replay: ({ bench }) => bench.turnpike.ledger.replay(),
  stateAt: ({ bench }) => statesOf(bench.turnpike.ledger),
};

async function* runTrees(ledger: LedgerReader): AsyncGenerator {
  for await (const { tree_id } of ledger.summaries()) yield await ledger.runTree(tree_id);
}

async function* artifacts(ledger: LedgerReader): AsyncGenerator {
  for await (const entry of ledger.log()) yield await ledger.artifactsOf(entry);
}

/** Queried for every hash of the ledger: no content of a case belongs to the platform. */
async function* systemArtifacts({ bench }: CanaryWorld): AsyncGenerator {
  const { ledger } = bench.turnpike;
  for await (const entry of ledger.log()) {
    for (const one of await ledger.artifactsOf(entry)) yield await ledger.systemArtifact(artifactRef(one).hash_sha256);
  }
}

async function* statesOf(ledger: LedgerReader): AsyncGenerator {
  const size = await ledger.size();
  for (let until = 0; until < size; until += 7) yield await ledger.stateAt({ until });
}

const ACTS = 'it does something; what it gives is walked as HTTP, command or agent';

/** The result of each member of a Turnpike. */
const OF_TURNPIKE: Readonly<Record<string, Read | string>> = {
  home: ({ bench }) => Promise.resolve(bench.turnpike.home),
  keys: ({ bench }) => Promise.resolve(bench.turnpike.keys),
  state: ({ bench }) => Promise.resolve(bench.turnpike.state),
  exports: ({ bench }) => Promise.resolve(bench.turnpike.exports),
  recovery: ({ bench }) => Promise.resolve(bench.turnpike.recovery),
  readiness: ({ bench }) => bench.turnpike.readiness.report(),
  vitals: ({ bench }) => Promise.resolve(bench.turnpike.vitals),
  requests: ({ bench, asked }) => Promise.all(asked.map(({ run_id }) => bench.turnpike.requests(run_id))),
  approvalOf: ({ bench, asked }) =>
    Promise.all(asked.map(({ run_id }) => bench.turnpike.approvalOf(run_id, '{"action":"CALL_TOOL","args":{}}'))),
  failed: ({ bench }) => Promise.resolve(bench.turnpike.failed),
  restart: ({ bench }) => bench.turnpike.restart(),
  upstreams: ({ bench }) => Promise.resolve(bench.turnpike.upstreams),
  policy: ({ bench }) => bench.turnpike.policy(),
  policyVersions: ({ bench }) => bench.turnpike.policyVersions(),
  control: ({ bench }) => Promise.resolve(bench.turnpike.control?.connections),
  report: ACTS,
  requestAct: ACTS,
  reportAct: ACTS,
  decide: ACTS,
  hooks: ACTS,
  rotateCaseKeys: 'it returns cases and counts, and the content that it encrypts again stays in the store',
  rotateLedgerKey: 'it returns keys and sizes, and reads no content',
  startAgent: ACTS,
  runAgent: ACTS,
  submit: ACTS,
  respond: ACTS,
  promote: ACTS,
  export: ACTS,
  approve: ACTS,
  resolve: ACTS,
  erase: ACTS,
  close: ACTS,
  nextTimer: ({ bench, asked }) => bench.turnpike.nextTimer(asked[0]?.run_id ?? ''),
  remoteAgents: ({ bench, asked }) => bench.turnpike.remoteAgents.find(asked[0]?.run_id ?? ''),
  highRiskRun: ({ bench, asked }) => highRisk(bench.turnpike, asked),
  agent: ({ bench, asked }) => bench.turnpike.agent(asked[0]?.run_id ?? ''),
  sessions: ({ bench, sessions }) =>
    Promise.all([bench.turnpike.sessions.list(), bench.turnpike.sessions.status(sessions[0] ?? '')]),
  readContent: (world) => contents(world),
  readRequest: ({ bench, asked }) =>
    Promise.all(asked.map(({ run_id, digest }) => bench.turnpike.readRequest({ run: run_id, digest, ...OLGA }))),
  recordReading: ({ bench }) => bench.turnpike.recordReading({ log_index: 0, sha256: '0'.repeat(64), ...OLGA }),
  ledger: 'its members are listed above',
  replay: ({ bench }) => bench.turnpike.replay(),
};

async function highRisk(turnpike: CanaryWorld['bench']['turnpike'], asked: CanaryWorld['asked']): Promise<unknown> {
  const runs = await Promise.all(asked.map(({ run_id }) => turnpike.highRiskRun(run_id)));
  return runs.map((run) => (run === null ? null : { ...run, finished: null }));
}

/** Everything there is, for a person who may approve none of it. */
async function* contents({ bench }: CanaryWorld): AsyncGenerator {
  const { turnpike } = bench;
  const { ledger } = turnpike;
  const end = await ledger.size();
  for await (const entry of ledger.log()) {
    if (entry.log_index >= end) return;
    for (const one of await ledger.artifactsOf(entry)) {
      const request = { log_index: entry.log_index, sha256: artifactRef(one).hash_sha256, ...OLGA };
      yield await turnpike.readContent(request).catch((error: unknown) => error);
    }
  }
}

export async function* libraryOutputs(world: CanaryWorld): AsyncGenerator<Output> {
  const members = Object.getOwnPropertyNames(LedgerReader.prototype).filter((name) => name !== 'constructor');
  yield* outputsOf('LedgerReader', members, OF_READER, world);
  yield* outputsOf('Turnpike', Object.keys(world.bench.turnpike), OF_TURNPIKE, world);
  const source = homeInspectorSource(world.bench.turnpike.ledger, world.bench.turnpike.home);
  const template = '<html><script type="application/json" id="turnpike-data"></script></html>';
  yield {
    name: 'one-file page of the home',
    bytes: await renderOneFile(template, source, { maxBytes: 64 * 1_048_576 }),
  };
  await source.close();
  yield* inspectorOutputs(world);
  yield* mcpOutputs(world);
}

async function* outputsOf(
  of: string,
  members: readonly string[],
  reads: Readonly<Record<string, Read | string>>,
  world: CanaryWorld,
): AsyncGenerator<Output> {
  const unlisted = members.filter((name) => reads[name] === undefined);
  if (unlisted.length > 0) throw new Error(`the walk does not know ${of}.${unlisted.join(', ')}: add it`);
  for (const name of members) {
    const read = reads[name];
    if (typeof read === 'function') yield { name: `${of}.${name}`, bytes: await collected(read(world)) };
  }
}

/** Everything that a viewer could receive: these options let contexts and events through. */
const ALL = { context: (context: unknown) => context as object, event: (event: object) => event };

async function* inspectorOutputs({ bench }: CanaryWorld): AsyncGenerator<Output> {
  const messages: string[] = [];
  const hub = inspectionHub(ALL);
  hub.listen((message) => void messages.push(JSON.stringify(message)));
  const stately = statelyObserver({ inspect: { next: (event) => void messages.push(shown(event)) } }, ALL);
  for (const observe of [hub.inspect, stately, (event: InspectionEvent) => void messages.push(shown(plain(event)))]) {
    const watch = watchLedger(bench.turnpike.ledger, observe, { from: 0 });
    await watch.caughtUp();
    await watch.close();
  }
  if (messages.length < 100) throw new Error(`an inspector got ${messages.length} messages`);
  yield { name: 'XState inspection of the ledger', bytes: messages.join('\n') };
}

/** Without the actors, which refer to one another and to everything. */
export function plain(event: InspectionEvent): object {
  const { type } = event;
  const parts: Record<string, unknown> = { type };
  if ('event' in event) parts['event'] = event.event;
  if ('action' in event) parts['action'] = event.action;
  if ('snapshot' in event) {
    const { value, context, output, error } = event.snapshot as unknown as Record<string, unknown>;
    Object.assign(parts, { value, context, output, error });
  }
  return parts;
}

/** A connection of another agent: every tool that it is offered, on runs and sessions of others. */
async function* mcpOutputs({ bench, asked, sessions }: CanaryWorld): AsyncGenerator<Output> {
  const agent = { case: CASE, lane: 'CASE_WORK', role: 'CASE_AGENT', actor: 'stranger' };
  const service = serviceOn(bench, { agent });
  const client = await clientOf(service);
  const policy = await bench.turnpike.policy();
  const { tools } = await client.listTools();
  const offered = createOffer(policy, 'CASE_WORK', { added: service.addedTools, newRuns: true }).tools.map(
    ({ name }) => name,
  );
  yield { name: 'MCP tools/list', bytes: JSON.stringify([tools, offered, client.getServerCapabilities()]) };
  for (const { name } of tools) {
    // A caller of the session tools works through sessions, and is their agent.
    if (['task', 'review', 'verification'].includes(name)) continue;
    for (const run_id of asked.map((one) => one.run_id)) {
      const answer = await client
        .callTool({ name, arguments: { run_id, proposal: '{}' } })
        .catch((error: unknown) => error);
      yield { name: `MCP ${name}`, bytes: shown(answer) };
    }
  }
  for (const list of ['listResources', 'listPrompts', 'listResourceTemplates'] as const) {
    yield { name: `MCP ${list}`, bytes: shown(await client[list]().catch((error: unknown) => error)) };
  }
  const status = { action: 'session-step', command: 'status', session_id: sessions[0] };
  yield {
    name: 'MCP task status',
    bytes: shown(await client.callTool({ name: 'task', arguments: status }).catch(String)),
  };
  await client.close();
}
