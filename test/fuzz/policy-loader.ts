// The campaign over the policy loader: the shipped files with damaged bytes and lines. The loader must answer with
// findings or with a policy, and a run must work under a policy that it returns.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gitBlobId } from '../../src/home/policy/manifest-policy-source.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { POLICY_FILES, type PolicyFile } from '../../src/core/contract/policy/pins.js';
import { PolicyError, RunError } from '../../src/core/errors.js';
import { checkPolicy, formatFinding, loadPolicy } from '../../src/core/policy/files/check-policy.js';
import type { LoadedPolicyFile } from '../../src/engine/ports/policy-sources.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import '../fixtures/approvals.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { chanceOf, seedOf, type Chance } from './chance.js';
import { HANG_MS, stopwatch } from './hang.js';
import { mutate } from './mutate.js';
import { fixtures, ROOT } from './places.js';

export type PolicyBytes = Readonly<Record<PolicyFile, Uint8Array>>;

export interface PolicyReport {
  files: number;
  loaded: number;
  /** Loaded policies under which an agent has run. */
  tried: number;
  slowestMs: number;
  /** The number of different sets of findings. */
  behaviours: number;
  readonly violations: { readonly what: string; readonly name: PolicyFile; readonly bytes: Uint8Array }[];
}

/** The loader under test; a test may replace it by a faulty one. */
export interface Loader {
  readonly check: typeof checkPolicy;
  readonly load: typeof loadPolicy;
}
const LOADER: Loader = { check: checkPolicy, load: loadPolicy };

export interface PolicyOptions {
  readonly seed: number;
  readonly files: number;
  readonly measure?: boolean;
  readonly loader?: Loader;
}

const FINDINGS_MAX = 200;
const VIOLATIONS_MAX = 20;
/** One loaded policy in this number is tried with an agent. */
const TRY_ONE_IN = 10;

const shipped = (file: string): Uint8Array =>
  new Uint8Array(readFileSync(join(ROOT, 'policies/contract/v1/policy', file)));
const SHIPPED: PolicyBytes = {
  lanes: shipped('lanes.yaml'),
  roles: shipped('roles.yaml'),
  actions: shipped('actions.yaml'),
};
const BASES: readonly (readonly [PolicyFile, Uint8Array])[] = [
  ...POLICY_FILES.map((name) => [name, SHIPPED[name]] as const),
  ['actions', shipped('actions.coding.yaml')],
];

const TOKENS = [
  ...[
    '- ',
    '? ',
    ': ',
    '{',
    '}',
    '[',
    ']',
    ', ',
    '&a ',
    '*a',
    '!!js ',
    '|\n',
    '>-\n',
    '# ',
    '---\n',
    '...\n',
    '<<: *a',
  ],
  ...[
    '~',
    'null',
    'true',
    'no',
    '.inf',
    '.nan',
    '0x10',
    '0o7',
    '1e99',
    '-1',
    '0',
    '1e12',
    '"',
    "'",
    '\\',
    '\t',
    '\r\n',
  ],
  ...[
    'v1',
    'v2',
    'version: v1\n',
    'SANDBOX_FILES',
    'SANDBOX_AGENT',
    'THINK',
    '.txt',
    '.sh',
    'append',
    'upsert',
    '\ufeff',
  ],
  ...[
    '__proto__: ',
    'constructor: ',
    '\u0000',
    '\u0085',
    '\u2028',
    '%YAML 1.1\n',
    "@'\n",
    'lanes:\n',
    'roles:\n',
    '  ',
  ],
].map((word) => new Uint8Array(Buffer.from(word)));

/** Runs the loader over the fixtures, and then over `files` damaged files. */
export async function fuzzPolicies(options: PolicyOptions): Promise<PolicyReport> {
  const { seed, files, measure = false, loader = LOADER } = options;
  const report: PolicyReport = { files: 0, loaded: 0, tried: 0, slowestMs: 0, behaviours: 0, violations: [] };
  const behaviours = new Map<string, readonly [PolicyFile, Uint8Array]>();
  const chance = chanceOf(seedOf(seed, 1_000_003));
  const kept = [...BASES];
  const take = async (name: PolicyFile, bytes: Uint8Array): Promise<void> => {
    // The first one that loads is always tried: a small campaign may draw none.
    const tryIt = chance.oneIn(TRY_ONE_IN) || report.tried === 0;
    const problem = await judgePolicy(name, bytes, { loader, measure, report, tryIt });
    if (problem.what !== null) report.violations.push({ what: problem.what, name, bytes });
    if (!behaviours.has(problem.behaviour) && kept.length < 400) kept.push([name, bytes]);
    behaviours.set(problem.behaviour, [name, bytes]);
    report.behaviours = behaviours.size;
  };
  for (const { name, bytes } of fixtures('policies')) await take(fileOf(name), bytes);
  while (report.files < files && report.violations.length < VIOLATIONS_MAX) {
    const [name, base] = chance.pick(kept);
    await take(
      name,
      chance.oneIn(2) ? mutate(base, chance, { tokens: TOKENS, other: chance.pick(kept)[1] }) : lines(base, chance),
    );
  }
  return report;
}

/** The name of a fixture states its file: `lanes-...`, `roles-...` or `actions-...`. */
const fileOf = (fixture: string): PolicyFile => POLICY_FILES.find((name) => fixture.startsWith(name)) ?? 'lanes';

/**
 * Mutations that keep lines whole, so that more of the result is YAML: truncate, duplicate, swap, indent, change a
 * value.
 */
function lines(bytes: Uint8Array, chance: Chance): Uint8Array {
  const list = Buffer.from(bytes).toString('utf8').split('\n');
  for (let count = 1 + chance.below(3); count > 0; count -= 1) {
    const at = chance.below(list.length);
    const line = list[at] ?? '';
    const other = chance.below(list.length);
    const value = Buffer.from(chance.pick(TOKENS)).toString('utf8');
    const changes: (() => unknown)[] = [
      () => list.splice(at, 1),
      () => list.splice(at, 0, line),
      () => list.splice(at, 1, list[other] ?? ''),
      () => list.splice(at, 1, `  ${line}`),
      () => list.splice(at, 1, line.replace(/^ {2}/, '')),
      () => list.splice(at, 1, line.replace(/(:\s+)\S.*$/, `$1${value}`)),
      () =>
        list.splice(
          at,
          1,
          line.replace(/\d+/, () => String(chance.below(2 ** 31))),
        ),
      () => list.splice(at, 1, line.replace(/#.*$/, '')),
    ];
    chance.pick(changes)();
  }
  return new Uint8Array(Buffer.from(list.join('\n')));
}

interface Judging {
  readonly loader: Loader;
  readonly measure: boolean;
  readonly report: PolicyReport;
  readonly tryIt: boolean;
}

interface Judged {
  /** The violation; otherwise null. */
  readonly what: string | null;
  readonly behaviour: string;
}

/** Checks the loader with one file among the shipped others. */
async function judgePolicy(name: PolicyFile, damaged: Uint8Array, judging: Judging): Promise<Judged> {
  const { loader, report } = judging;
  const bytes: PolicyBytes = { ...SHIPPED, [name]: damaged };
  report.files += 1;
  try {
    const ms = await timeOf(() => loader.check(named(bytes)), judging);
    const { findings, policy } = loader.check(named(bytes));
    const rules = [...new Set(findings.map(({ rule }) => rule))].sort().join();
    const behaviour = `${name} ${rules}`;
    const wrong: (readonly [boolean, string])[] = [
      [(policy === null) !== findings.length > 0, 'a policy is there exactly when there is no finding, but not here'],
      [findings.length > FINDINGS_MAX, `there are ${findings.length} findings`],
      [findings.some(({ line }) => !Number.isInteger(line) || line < 1), 'a finding has no line'],
      [findings.some((finding) => !/^[ -~]{1,2000}$/.test(formatFinding(finding))), 'a finding is not one plain line'],
      [judging.measure && ms > HANG_MS, `the loader took ${ms.toFixed(1)} ms, by itself, at best`],
      [loads(loader, bytes) !== (policy !== null), 'check and load do not agree'],
    ];
    const what = wrong.find(([is]) => is)?.[1] ?? null;
    if (policy === null || what !== null) return { what, behaviour };
    report.loaded += 1;
    if (judging.tryIt) report.tried += 1;
    return { what: judging.tryIt ? await tryPolicy(bytes) : null, behaviour };
  } catch (error) {
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { what: `thrown: ${words}`, behaviour: `thrown ${words.slice(0, 80)}` };
  }
}

const named = (bytes: PolicyBytes) => ({
  lanes: { path: 'lanes.yaml', bytes: bytes.lanes },
  roles: { path: 'roles.yaml', bytes: bytes.roles },
  actions: { path: 'actions.yaml', bytes: bytes.actions },
});

/** The time of the best of several attempts; zero if nothing is measured. */
async function timeOf(work: () => unknown, { measure, report }: Judging): Promise<number> {
  let best = measure ? Infinity : 0;
  for (let attempt = 0; measure && attempt < 5 && best > HANG_MS / 2; attempt += 1) {
    const elapsed = stopwatch();
    work();
    best = Math.min(best, elapsed());
    // A pause of the collector has ended when the next turn begins.
    if (best > HANG_MS / 2) await new Promise((done) => setImmediate(done));
  }
  report.slowestMs = Math.max(report.slowestMs, best);
  return best;
}

/** Whether the file loads. Rethrows any error but the documented one. */
function loads(loader: Loader, bytes: PolicyBytes): boolean {
  try {
    loader.load(bytes);
    return true;
  } catch (error) {
    if (error instanceof PolicyError && error.code === 'POLICY_INVALID') return false;
    throw error;
  }
}

/** Runs an agent under a loaded policy: if it is admitted, it gets its responses, and the ledger replays. */
async function tryPolicy(bytes: PolicyBytes): Promise<string | null> {
  const folder = tempFolder('fuzz-policy');
  const file = (name: PolicyFile): LoadedPolicyFile => {
    const pin = { git_sha: gitBlobId(bytes[name]), sha256: sha256(bytes[name]), source: 'manifest' } as const;
    return { name, path: `${name}.yaml`, bytes: bytes[name], pin };
  };
  const files = { lanes: file('lanes'), roles: file('roles'), actions: file('actions') };
  const turnpike = await openTurnpike({
    store: memoryStore(),
    sandbox: join(folder, 'sandbox'),
    policies: { load: () => Promise.resolve(files) },
    clock: new ManualClock(),
    log: winstonLog('silent'),
  });
  try {
    const agent = await turnpike.startAgent({ case: 'case-local' });
    for (const [number, payload] of PROBES.entries()) {
      const response = await agent.respond(payload).catch((error: unknown) => {
        if (error instanceof RunError && error.code === 'RUN_ENDED') return null;
        throw error;
      });
      if (response !== null && typeof JSON.parse(response) !== 'object') return `probe ${number} has no response`;
    }
    if (!(await turnpike.ledger.verify()).ok) return 'a ledger under this policy does not verify';
    return (await turnpike.replay()).ok ? null : 'a ledger under this policy does not replay';
  } finally {
    await turnpike.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const PROBES = [
  ['THINK', {}],
  ['WRITE_FILE', { path: '/sandbox/a.txt', content: 'a' }],
  ['READ_FILE', { path: '/sandbox/a.txt' }],
  ['LIST_FILES', { path: '/sandbox/' }],
  ['FINISH', { response: '' }],
].map(([action, args], n) =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-00000000000${n}`,
    reasoning: 'x',
    action,
    args,
  }),
);
