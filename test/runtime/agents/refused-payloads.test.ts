// What an agent can store in the ledger with rejected payloads.

import { expect, test } from '@jest/globals';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { ProposalInput } from '../../../src/core/contract/run/entry.js';
import { PAYLOAD_PREFIX_BYTES } from '../../../src/core/contract/run/input.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

const MIB = 2 ** 20;
const TOO_LARGE = { outcome: 'VALIDATION_ERROR', error: { error_code: 'PAYLOAD_TOO_LARGE' } };

async function withBench(options: BenchOptions, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open(options);
  await work(bench);
  await bench.close();
}

/** The policy with one of its limits changed or added. */
const limits = (name: string, value: number): BenchOptions => ({
  edit: (file, text) => {
    if (file !== 'actions') return text;
    const line = new RegExp(`^  ${name}: \\d+`, 'm');
    return line.test(text)
      ? text.replace(line, `  ${name}: ${value}`)
      : text.replace(/^limits:\n/m, `limits:\n  ${name}: ${value}\n`);
  },
});

async function contentsOf({ turnpike }: Bench): Promise<Uint8Array[]> {
  const found: Uint8Array[] = [];
  for await (const entry of turnpike.ledger.log()) {
    if (entry.type !== 'input') continue;
    for (const artifact of await turnpike.ledger.artifactsOf(entry))
      if ('bytes' in artifact) found.push(artifact.bytes);
  }
  return found;
}

const proposalsIn = async (bench: Bench): Promise<ProposalInput[]> =>
  (await bench.entries()).flatMap(({ type, body }) => (type === 'input' && body.kind === 'proposal' ? [body] : []));

test('S0-17 S0-20 C80: a payload over the limit is recorded as hash, length and first bytes', () =>
  withBench({}, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    const payload = Buffer.alloc(4 * MIB, 'x');
    const before = (await contentsOf(bench)).reduce((sum, bytes) => sum + bytes.byteLength, 0);
    for (let sent = 0; sent < 3; sent += 1) expect(await agent.submit(payload)).toMatchObject(TOO_LARGE);
    const recorded = await proposalsIn(bench);
    const prefix = { kind: 'raw_payload_prefix', case_id: 'case-local', bytes: payload.subarray(0, 1_024) } as const;
    expect(recorded.map(({ payload: { hash_sha256, byte_size } }) => [hash_sha256, byte_size])).toEqual(
      Array.from({ length: 3 }, () => [sha256(payload), 4 * MIB]),
    );
    expect(recorded[0]?.prefix).toEqual(artifactRef(prefix));
    const contents = await contentsOf(bench);
    expect(contents.reduce((sum, bytes) => sum + bytes.byteLength, 0) - before).toBe(3 * PAYLOAD_PREFIX_BYTES);
    await agent.end();
  }));

test('S0-17 C80: a payload of the maximum size is stored completely, a longer one is not', () =>
  withBench(limits('payload_bytes_max', 300_000), async (bench) => {
    const agent = await bench.turnpike.startAgent();
    await agent.submit(Buffer.alloc(300_000, 'x'));
    await agent.submit(Buffer.alloc(300_001, 'x'));
    const [whole, cut] = await proposalsIn(bench);
    expect(whole).not.toHaveProperty('prefix');
    expect(cut).toHaveProperty('prefix.byte_size', PAYLOAD_PREFIX_BYTES);
    await agent.end();
  }));

test('C19 C80: a payload over the limit that begins with a proposal is not one, and uses no id', () =>
  withBench({}, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    const think = JSON.stringify(proposal('THINK', {}));
    const padded = `${think}${' '.repeat(PAYLOAD_PREFIX_BYTES - think.length)}`;
    expect(await agent.submit(padded)).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.submit(padded + ' '.repeat(MIB))).toMatchObject(TOO_LARGE);
    expect(await agent.submit(padded)).toMatchObject({ error: { error_code: 'DUPLICATE_PROPOSAL_ID' } });
    await agent.end();
  }));

test('D4 C80: a repeated request over the limit gets its recorded response', () =>
  withBench({}, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    const payload = Buffer.alloc(MIB, ' ');
    const first = await agent.respond(payload, { inputId: 'one' });
    expect(await agent.respond(payload, { inputId: 'one' })).toBe(first);
    expect(await proposalsIn(bench)).toHaveLength(1);
    await agent.end();
  }));

async function invalidUntilEnd(agent: AgentRun, payloads: readonly string[]): Promise<number> {
  for (let sent = 0; ; sent += 1) {
    const answer = await agent.submit(payloads[sent % payloads.length] ?? '').catch(() => null);
    if (answer === null) return sent;
    if (sent > 1_000) throw new Error('the run goes on');
  }
}

const INVALID = [
  '',
  'no JSON',
  '{}',
  JSON.stringify({ ...proposal('THINK', {}), action: 'NO_SUCH_ACTION' }),
  JSON.stringify(proposal('READ_FILE', { path: '/etc/passwd' })),
];

test('C81: a run fails after the permitted number of invalid proposals, whatever phase rejects them', () =>
  withBench(limits('invalid_per_run_max', 7), async (bench) => {
    const agent = await bench.turnpike.startAgent();
    expect(await invalidUntilEnd(agent, INVALID)).toBe(7);
    expect(await agent.finished).toMatchObject({ state: 'failed', reason: 'INVALID_PROPOSALS' });
  }));

test('C81: the default limit is 100, or the limit of denials if that is higher', async () => {
  await withBench({}, async ({ turnpike }) => {
    expect(await invalidUntilEnd(await turnpike.startAgent(), INVALID)).toBe(100);
  });
  await withBench(limits('denials_per_run_max', 130), async ({ turnpike }) => {
    expect(await invalidUntilEnd(await turnpike.startAgent(), INVALID)).toBe(130);
  });
});

test('C81: steps that are done, denied or failed do not count as invalid proposals', () =>
  withBench(limits('invalid_per_run_max', 2), async (bench) => {
    const agent = await bench.turnpike.startAgent();
    const acts = [
      proposal('THINK', {}),
      proposal('READ_FILE', { path: '/sandbox/none.txt' }),
      proposal('WRITE_FILE', { path: '/sandbox/a.sh', content: 'x' }),
    ];
    for (const act of acts) await agent.submit(JSON.stringify(act));
    await agent.submit('no JSON');
    expect(await agent.submit(JSON.stringify(proposal('THINK', {})))).toMatchObject({ outcome: 'SUCCESS' });
    await agent.submit('no JSON');
    expect(await agent.finished).toMatchObject({ state: 'failed', reason: 'INVALID_PROPOSALS' });
  }));
