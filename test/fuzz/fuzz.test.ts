// Every payload of an agent gets one response that reveals nothing of the host, and leaves one trace in the ledger; the
// policy loader answers for any file. This is a small `npm run campaign -- fuzz` with a fixed seed and no clock. Then
// the same campaign runs against faulty systems, because a check that cannot fail proves nothing.

import { describe, expect, test } from '@jest/globals';
import { PolicyError } from '../../src/core/errors.js';
import { checkPolicy, loadPolicy } from '../../src/core/policy/files/check-policy.js';
import type { StoredEntry } from '../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { sized } from '../fixtures/campaign.js';
import { fixtureChunks, fuzzChunk, fuzzSteps, type Report } from './campaign.js';
import { corpora } from './corpora.js';
import { fuzzPolicies, type Loader } from './policy-loader.js';
import { PayloadSource } from './source.js';
import type { Open, Opened } from './world.js';

const SEED = 20_260_131;
const PAYLOADS = sized(200, 4_000);
const { payloads: corpus, skipped } = corpora();
if (skipped.length > 0) process.stdout.write(`${skipped.join('\n')}\n`);

/** The distinct messages of the violations; a violation itself contains a whole chunk. */
const wordsOf = ({ violations }: Pick<Report, 'violations'>): readonly string[] => [
  ...new Set(violations.map(({ what, payload }) => `${what} | ${Buffer.from(payload).toString('base64')}`)),
];

describe('step', () => {
  // The shipped policy, and the one with the smallest limits; the campaign has all four.
  const chunks = fixtureChunks().filter(({ policy }) => sized(0, 1) === 1 || /^narrow$/.test(policy));

  test.each(chunks)('S0-04 S2-19 S2-20: past failures stay fixed under the policy $policy', async (chunk) => {
    const report = await fuzzChunk(chunk);
    expect(wordsOf(report)).toEqual([]);
    expect(report.payloads).toBeGreaterThanOrEqual(chunk.payloads.length * 8);
  });

  test(`S0-04 S0-56 S0-69 S0-72 S2-10 S2-19 S2-20 C01 C02 C35 C38 D6: ${PAYLOADS} payloads, seed ${SEED}`, async () => {
    const report = await fuzzSteps({
      seed: SEED,
      payloads: PAYLOADS,
      corpus,
      chunkSize: sized(100, 2_000),
      sqliteEvery: 25,
      proveEvery: 6,
    });
    expect(wordsOf(report)).toEqual([]);
    expect(report).toMatchObject({ payloads: PAYLOADS, traces: PAYLOADS });
    // All four outcomes, many ended runs and many different behaviours: otherwise the payloads test too little.
    expect(Math.min(...Object.values(report.outcomes))).toBeGreaterThan(PAYLOADS / 50);
    expect(report.late).toBeGreaterThan(sized(0, 15));
    expect(report.behaviours).toBeGreaterThan(sized(80, 250));
  }, 300_000);

  test('the same seed gives the same payloads, another seed gives others', () => {
    const first = (seed: number) => new PayloadSource(seed, corpus).chunk(300).map((bytes) => Buffer.from(bytes));
    expect(first(1)).toEqual(first(1));
    expect(first(1)).not.toEqual(first(2));
  });
});

describe('the policy loader', () => {
  test('D1 C55: damaged policy files are rejected with findings, or a run works under them', async () => {
    const report = await fuzzPolicies({ seed: SEED, files: sized(60, 400) });
    expect(report.violations.map(({ name, what }) => `${name}: ${what}`)).toEqual([]);
    expect(report.loaded).toBeGreaterThan(sized(2, 10));
    expect(report.tried).toBeGreaterThan(0);
    expect(report.behaviours).toBeGreaterThan(sized(15, 30));
  });

  const liars: readonly (readonly [string, Loader, RegExp])[] = [
    ['crashes', { load: loadPolicy, check: () => [][0]! }, /thrown: TypeError/],
    ['throws another error', { check: checkPolicy, load: () => JSON.parse('{') as never }, /thrown: SyntaxError/],
    [
      'loads a policy with findings',
      { load: loadPolicy, check: (files) => ({ ...checkPolicy(files), policy: {} as never }) },
      /exactly when there is no finding/,
    ],
    ['refuses what it has found nothing in', { check: checkPolicy, load: () => fail() }, /check and load do not agree/],
    [
      'finds without an end',
      {
        load: loadPolicy,
        check: (files) => {
          const { findings, policy } = checkPolicy(files);
          return { findings: findings.flatMap((finding) => Array.from({ length: 201 }, () => finding)), policy };
        },
      },
      /there are \d+ findings/,
    ],
  ];
  test.each(liars)('detects a loader that %s', async (_what, loader, words) => {
    const { violations } = await fuzzPolicies({ seed: SEED, files: sized(20, 60), loader });
    expect(violations.map(({ what }) => what).join('\n')).toMatch(words);
  });
});

function fail(): never {
  throw new PolicyError({ code: 'POLICY_INVALID', message: 'the policy is invalid' });
}

/** A real Turnpike whose output is altered on its way to the campaign. */
interface Lie {
  readonly respond?: (text: string, folder: string) => string;
  readonly log?: (entries: AsyncIterable<StoredEntry>) => AsyncIterable<StoredEntry>;
  readonly opened?: Partial<Opened>;
  readonly throws?: Error;
}

const lying =
  ({ respond = (text) => text, log = (entries) => entries, opened = {}, throws }: Lie): Open =>
  async (options) => {
    const turnpike = await openTurnpike(options);
    const folder = typeof options.sandbox === 'string' ? options.sandbox : '';
    return {
      close: () => turnpike.close(),
      replay: () => turnpike.replay(),
      ledger: { log: () => log(turnpike.ledger.log()), verify: () => turnpike.ledger.verify() },
      startAgent: async (agentOptions) => {
        const agent = await turnpike.startAgent(agentOptions);
        const spoilt = async (...request: Parameters<typeof agent.respond>): Promise<string> => {
          const text = await agent.respond(...request);
          if (throws !== undefined) throw throws;
          return respond(text, folder);
        };
        return { ...agent, respond: spoilt };
      },
      ...opened,
    };
  };

async function* without(entries: AsyncIterable<StoredEntry>, times: number): AsyncIterable<StoredEntry> {
  let met = 0;
  for await (const entry of entries) {
    const chosen = entry.type === 'step_trace' && (met += 1) === 40;
    for (let copies = chosen ? times : 1; copies > 0; copies -= 1) yield entry;
  }
}

async function* edited(entries: AsyncIterable<StoredEntry>, pattern: RegExp, by: string): AsyncIterable<StoredEntry> {
  for await (const entry of entries) {
    yield entry.type === 'step_trace' ? { ...entry, text: entry.text.replace(pattern, by) } : entry;
  }
}

const MESSAGE = /"message":"[^"]*"/;
const claims = (ok: boolean) => Promise.resolve({ ok, steps: 0, responses: 0 });

const LIES: readonly (readonly [string, Lie, RegExp])[] = [
  [
    'answers with a path of the host',
    { respond: (t, f) => t.replace(MESSAGE, `"message":"${f}"`) },
    /shows .*turnpike-fuzz/,
  ],
  ['hides a path in a result', { respond: (t, f) => t.replace(/"content":"/, `$&${f}`) }, /shows turnpike-fuzz/],
  ['names the rule', { respond: (t) => t.replace(MESSAGE, '"message":"args.schema"') }, /shows args\.schema/],
  ['shows a stack', { respond: (t) => t.replace(MESSAGE, '"message":"x\\n    at y"') }, /shows a stack/],
  ['makes up a message', { respond: (t) => t.replace(MESSAGE, '"message":"No."') }, /not one of the constant ones/],
  ['adds a key', { respond: (t) => t.replace(/\}$/, ',"rule_id":null}') }, /conforms to no schema/],
  ['leaves a key out', { respond: (t) => t.replace(',"result":null', '') }, /conforms to no schema/],
  ['turns the keys round', { respond: (t) => t.replace(/^\{(.*?),(.*?),/, '{$2,$1,') }, /order of the contract/],
  ['answers with no JSON', { respond: () => 'Internal error' }, /no JSON/],
  ['answers prettily', { respond: (t) => JSON.stringify(JSON.parse(t), null, 1) }, /not compact/],
  [
    'echoes another action',
    { respond: (t) => t.replace('"action":"THINK"', '"action":"FINISH"') },
    /action is not that/,
  ],
  ['echoes another id', { respond: (t) => t.replace(/"proposal_id":"./, '"proposal_id":"z') }, /id is not that/],
  ['lets invalid JSON succeed', { respond: succeed }, /was taken for a proposal/],
  ['throws', { throws: new TypeError('planted') }, /thrown: TypeError: planted/],
  ['has no trace of a step', { log: (entries) => without(entries, 0) }, /has \d+ traces/],
  ['has two traces of a step', { log: (entries) => without(entries, 2) }, /has \d+ traces/],
  ['has traces of no run', { log: (e) => edited(e, /"run_id":"[^"]*"/, '"run_id":"run_x.1"') }, /no caller has used/],
  ['hashes another response', { log: (e) => edited(e, /("response_sha256":")../, '$1zz') }, /hash of another response/],
  ['hashes another payload', { log: (e) => edited(e, /("hash_sha256":")../g, '$1zz') }, /of another payload/],
  ['skips an index', { log: (e) => edited(e, /"step_index":/, '"step_index":1') }, /step_index/],
  [
    'names another phase',
    { log: (e) => edited(e, /("phase_failed_at":)"\w+"/, '$1"RESPOND"') },
    /names the phase RESPOND/,
  ],
  ['does not verify', { opened: { ledger: lyingLedger() } }, /does not verify/],
  ['does not replay', { opened: { replay: () => claims(false) } }, /does not replay/],
  ['replays fewer steps', { opened: { replay: () => claims(true) } }, /the replay has 0 steps/],
];

function succeed(text: string): string {
  const said = JSON.parse(text) as { error?: { error_code?: string } };
  if (said.error?.error_code !== 'INVALID_JSON') return text;
  return '{"proposal_id":null,"action":"THINK","outcome":"SUCCESS","result":{},"error":null}';
}

function lyingLedger(): Opened['ledger'] {
  return { log: () => without({ [Symbol.asyncIterator]: nothing }, 0), verify: () => claims(false) };
}
const nothing = (): AsyncIterator<StoredEntry> => ({ next: () => Promise.resolve({ done: true, value: undefined }) });

/** A read that succeeds, whichever corpora are installed: some planted faults alter its content. */
const READ = JSON.stringify({
  schema_version: '1.0.0',
  id: '00000000-0000-4000-8000-000000000001',
  reasoning: 'It may say more.',
  action: 'READ_FILE',
  args: { path: '/sandbox/todo.txt' },
});

describe('a faulty system', () => {
  const chunk = {
    policy: 'patient',
    store: 'memory',
    to: 'one',
    payloads: [...new PayloadSource(7, corpus).chunk(sized(40, 160)), Buffer.from(READ)],
  } as const;

  test('the unaltered chunk has no violations', async () => {
    expect(wordsOf(await fuzzChunk(chunk, { open: lying({}) }))).toEqual([]);
  });

  test.each(LIES)('is detected if it %s', async (_what, lie, words) => {
    const report = await fuzzChunk(chunk, { open: lying(lie) });
    expect(wordsOf(report).join('\n')).toMatch(words);
  });
});
