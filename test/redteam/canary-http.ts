// Every route of the HTTP service, with all possible queries, by readers that are not among the audiences of withheld
// content. The routes and their parameters are those of the route table: a route with a new parameter, or a new POST,
// must be added here, or the walk fails.

import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { RIGHTS, type Right } from '../../src/core/contract/token.js';
import { ROUTES } from '../../src/interfaces/http/routes/system-routes.js';
import type { Route } from '../../src/interfaces/http/routes/route.js';
import { homeInspectorSource } from '../../src/interfaces/inspector/ledger-inspector-source.js';
import type { InspectorSource } from '../../src/interfaces/inspector/inspector-source.js';
import { HttpBench } from '../interfaces/http/http-harness.js';
import { CASE, SPEC, type CanaryWorld } from './canary-world.js';

export interface Output {
  readonly name: string;
  readonly bytes: Uint8Array | string;
}

type Values = Readonly<Record<string, string | number>>;

/**
 * The reader for each right: never the run's own agent, and never a person whose vote on the pending request would
 * count.
 */
const READERS: Readonly<Record<Right, { readonly actor: string; readonly role: string }>> = {
  observe: { actor: 'olga', role: 'ATTORNEY_ADMIN' },
  approve: { actor: 'pia', role: 'GOVERNANCE_AGENT' },
  govern: { actor: 'gina', role: 'ATTORNEY_ADMIN' },
  act: { actor: 'stranger', role: 'CASE_AGENT' },
  sessions: { actor: 'wim', role: 'observer' },
};

const EVALUATION = {
  subject: { type: 'agent', id: READERS.act.actor },
  action: { name: 'mail.send' },
  resource: { type: 'mail', id: 'one' },
};

/** The bodies of requests that change something. `null`: every holder of the right is an audience. */
const BODIES: Readonly<Record<string, ((world: CanaryWorld) => readonly object[]) | null>> = {
  '/api/v1/agents': () => [{ case: CASE, lane: 'CASE_WORK' }],
  '/api/v1/agents/{run_id}/steps': () => [{}],
  '/api/v1/agents/{run_id}/end': () => [{}],
  '/api/v1/hooks/{client}': () => [{ hook_event_name: 'SessionStart', session_id: 's-1' }],
  '/access/v1/evaluation': () => [EVALUATION],
  '/access/v1/evaluations': () => [{ evaluations: [EVALUATION, EVALUATION] }],
  '/api/v1/runs/{run_id}/report': () => [{ status: 'done' }],
  '/api/v1/runs/{run_id}/cancel': () => [{ reason: 'over' }],
  '/api/v1/runs/{run_id}/outcome': () => [{ outcome: 'done' }],
  '/api/v1/approvals': ({ asked }) =>
    asked.map(({ run_id, digest }) => ({ run_id, digests: [digest], decision: 'approve' })),
  '/api/v1/promotions': () => [{ case: CASE, ticket: 'T-2', target: 'shared_playbooks', record: { id: 'x' } }],
  '/api/v1/exports': () => [
    { case: CASE, reason: 'a request', name: 'one' },
    { case: CASE, reason: 'a request', name: 'two', format: 'zip' },
  ],
  // A holder of the right `sessions` works through sessions, and is their agent.
  '/api/v1/sessions': null,
  '/api/v1/sessions/{session_id}/next': null,
  '/api/v1/sessions/{session_id}/report': null,
  '/api/v1/sessions/{session_id}/replay': null,
  '/api/v1/sessions/{session_id}/heartbeat': null,
  '/api/v1/sessions/{session_id}/verify': null,
  '/api/v1/sessions/{session_id}/review': null,
  '/api/v1/sessions/{session_id}/pause': null,
  '/api/v1/sessions/{session_id}/resume': null,
  '/api/v1/sessions/{session_id}/end': null,
  '/api/v1/sessions/{session_id}/waive': null,
};

/** Reads by which the agent of a session receives its task. */
const OF_AGENT: ReadonlySet<string> = new Set(['sessions /api/v1/sessions/{session_id}/task']);

/** The changes that a test makes to see that the walk finds them. */
export interface Planted {
  readonly routes?: readonly Route[];
  /** The ledger that the routes show, in place of the inspector of the home. */
  readonly inspector?: (own: InspectorSource) => InspectorSource;
}

/** Every response of every route; the name identifies the route. */
export async function* httpOutputs(world: CanaryWorld, planted: Planted = {}): AsyncGenerator<Output> {
  const { turnpike } = world.bench;
  const { routes = ROUTES } = planted;
  const own = homeInspectorSource(turnpike.ledger, turnpike.home);
  const http = await HttpBench.on(world.bench, { inspector: planted.inspector?.(own) ?? own, log: world.log });
  try {
    const values = await valuesOf(world);
    for (const route of routes) yield* routeOutputs(route, http, world, values);
  } finally {
    await http.server.close();
    await own.close();
  }
}

async function* routeOutputs(
  route: Route,
  http: HttpBench,
  world: CanaryWorld,
  values: ValueTable,
): AsyncGenerator<Output> {
  const bodies = route.method === 'GET' ? [undefined] : bodiesOf(route, world);
  const rights = route.rights.length === 0 ? RIGHTS : route.rights;
  for (const right of bodies === null ? [] : rights) {
    if (OF_AGENT.has(`${right} ${route.path}`)) continue;
    const token = http.token({ ...READERS[right], rights: [right] });
    for (const path of pathsOf(route, values)) {
      for (const body of bodies ?? []) {
        const name = `${route.method} ${path} as ${right}`;
        yield { name, bytes: await answered(http, path, { token, body, isStream: route.path.endsWith('/stream') }) };
      }
    }
  }
}

function bodiesOf({ path }: Route, world: CanaryWorld): readonly object[] | null {
  const bodies = BODIES[path];
  if (bodies === undefined) throw new Error(`the walk has no body for POST ${path}: add one to ${import.meta.url}`);
  return bodies === null ? null : bodies(world);
}

interface Asking {
  readonly token: string;
  readonly body: object | undefined;
  readonly isStream: boolean;
}

/** Head and body, compressed and not. A stream is read until it is quiet for a while. */
async function answered(http: HttpBench, path: string, { token, body, isStream }: Asking): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const encoding of ['gzip', 'identity']) {
    const over = new AbortController();
    const asked = { headers: { 'accept-encoding': encoding }, signal: over.signal };
    const url = path.replace('/api/v1', '');
    const response = await http.ask(url, token, body === undefined ? asked : { ...asked, json: body });
    parts.push(Buffer.from(`${response.status} ${JSON.stringify([...response.headers])}\n`));
    if (isStream && response.ok) parts.push(await beginningOf(response, over));
    else parts.push(Buffer.from(await response.arrayBuffer()));
    // A request that changes something is sent once.
    if (body !== undefined) break;
  }
  return Buffer.concat(parts);
}

const QUIET_MS = 150;

async function beginningOf({ body }: Response, over: AbortController): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const quiet = new Promise<null>((resolve) => setTimeout(() => resolve(null), QUIET_MS));
    const next = await Promise.race([reader.read(), quiet]);
    if (next === null || next.done) break;
    chunks.push(next.value);
  }
  over.abort();
  return Buffer.concat(chunks);
}

type ValueTable = Readonly<Record<string, readonly Values[]>>;

/** Values of parameters, by the names that a path combines. */
async function valuesOf({ bench, asked, sessions }: CanaryWorld): Promise<ValueTable> {
  const { ledger } = bench.turnpike;
  const runs: string[] = [];
  const machines = new Set<string>();
  for await (const tree of ledger.trees()) {
    for (const run of tree.runs) {
      runs.push(run.run_id);
      machines.add(run.policy_versions.machines);
    }
  }
  const entries: Values[] = [];
  const artifacts: Values[] = [];
  const charts = new Set<string>();
  for await (const entry of ledger.log()) {
    const { log_index } = entry;
    entries.push({ log_index });
    for (const one of await ledger.artifactsOf(entry))
      artifacts.push({ log_index, sha256: artifactRef(one).hash_sha256 });
  }
  const source = homeInspectorSource(ledger, bench.turnpike.home);
  for (const run_id of runs) charts.add((await source.course(run_id, 0))?.chart ?? '');
  await source.close();
  const steps = runs.flatMap((run_id) => [1, 2, 3, 4, 5, 6, 7, 8].map((step) => ({ run_id, step })));
  return {
    '': [{}],
    client: [{ client: 'claude-code' }],
    'lane,case': [{ lane: 'CASE_WORK', case: CASE }],
    'project,lane,case': [{ project: '/tmp', lane: 'CASE_WORK', case: CASE }],
    run_id: [...runs, ...sessions].map((run_id) => ({ run_id })),
    'run_id,digest': asked.map(({ run_id, digest }) => ({ run_id, digest })),
    'run_id,step': steps,
    log_index: entries,
    'log_index,sha256': artifacts,
    hash: [...charts, ...machines].filter((hash) => hash !== '').map((hash) => ({ hash })),
    session_id: sessions.map((session_id) => ({ session_id })),
    // For queries: one response without the optional parameters, and one with them.
    'from,to': [{ from: 0, to: entries.length }],
    'after,limit': [-1, 99, 199, 299, 399].map((after) => ({ after, limit: 100 })),
    after: [{ after: 0 }],
    'format,after': ['entries', 'rows'].map((format) => ({ format, after: -1 })),
    at: [{ at: entries.length - 1 }, { at: Math.floor(entries.length / 2) }],
    task_id: [{ task_id: 't1' }, { task_id: 'v1' }],
    spec_id: [{ spec_id: SPEC.id }],
  };
}

interface Schema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

function* pathsOf({ path, params, query }: Route, values: ValueTable): Generator<string> {
  const { required = [], properties } = query as Schema;
  const names = Object.keys(properties).join(',');
  const queries = [...(required.length > 0 || names === '' ? [] : [{}]), ...named(names, path, values)];
  for (const of of named(Object.keys((params as Schema).properties).join(','), path, values)) {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(of[name] ?? ''));
    for (const asked of queries) {
      const text = new URLSearchParams(
        Object.entries(asked).map(([key, value]): [string, string] => [key, String(value)]),
      ).toString();
      yield text === '' ? filled : `${filled}?${text}`;
    }
  }
}

function named(names: string, path: string, values: ValueTable): readonly Values[] {
  const found = values[names];
  if (found === undefined)
    throw new Error(`the walk has no values for ${names} of ${path}: add them to ${import.meta.url}`);
  return found;
}
