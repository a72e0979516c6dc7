// The quota of a case applies to all its trees together, however many agents decide in one tick (C82).

import { expect, test } from '@jest/globals';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Effect, EffectResult } from '../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const CALLERS = 64;
const BYTES = 48_000;

const policy = (edits: Readonly<Record<string, number>>, sections = ''): BenchOptions => ({
  edit: (name, text) =>
    name !== 'actions'
      ? text
      : Object.entries(edits).reduce((edited, [key, value]) => {
          const line = new RegExp(`^  ${key}: \\d+`, 'm');
          expect(edited).toMatch(line);
          return edited.replace(line, `  ${key}: ${value}`);
        }, text) + sections,
});

async function withBench(options: BenchOptions, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open(options);
  await work(bench);
  await bench.close();
}

/** How many of the actions succeeded; each by an agent of its own, all at once. */
async function together(
  agents: readonly AgentRun[],
  act: (n: number) => readonly [string, JsonObject],
): Promise<number> {
  const responses = await Promise.all(
    agents.map((agent, n) => agent.submit(JSON.stringify(proposal(...act(n)))).catch(() => null)),
  );
  return responses.filter((response) => response !== null && 'outcome' in response && response.outcome === 'SUCCESS')
    .length;
}

const agentsOf = ({ turnpike }: Bench, count = CALLERS): Promise<AgentRun[]> =>
  Promise.all(Array.from({ length: count }, () => turnpike.startAgent()));

const write = (name: string, bytes: number): readonly [string, JsonObject] => [
  'WRITE_FILE',
  { path: `/sandbox/${name}`, content: 'x'.repeat(bytes) },
];

function bytesIn({ home }: Bench): number {
  const folder = join(home, 'sandbox/case-local');
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

test('S0-50 C82: of 64 agents of one case that write at once, exactly as many succeed as fit', () =>
  withBench(policy({ bytes_max: 1_000_000 }), async (bench) => {
    const agents = await agentsOf(bench);
    expect(await together(agents, (n) => write(`f${n}.txt`, BYTES))).toBe(Math.floor(1_000_000 / BYTES));
    expect(bytesIn(bench)).toBe(20 * BYTES);
    // The rest is available, to the last byte.
    expect(await together(agents, (n) => write(`g${n}.txt`, 40_001))).toBe(0);
    expect(await together(agents.slice(0, 5), (n) => write(`h${n}.txt`, 40_000))).toBe(1);
  }));

test('S0-50 C82: files and directories that 64 agents create at once are counted exactly', () =>
  withBench(policy({ files_max: 9 }), async (bench) => {
    const agents = await agentsOf(bench);
    const made = await together(agents, (n) =>
      n % 2 === 0 ? write(`f${n}.txt`, 1) : ['CREATE_DIRECTORY', { path: `/sandbox/d${n}` }],
    );
    expect(made).toBe(9);
    expect(readdirSync(join(bench.home, 'sandbox/case-local'))).toHaveLength(9);
  }));

test('C82: deletes, smaller overwrites and failures free their amount', () =>
  withBench(policy({ bytes_max: 100 }), async (bench) => {
    const agents = await agentsOf(bench, 4);
    expect(await together(agents, (n) => write(`f${n}.txt`, 25))).toBe(4);
    expect(await together(agents, () => write('g.txt', 1))).toBe(0);
    expect(await together(agents.slice(0, 2), (n) => ['DELETE_FILE', { path: `/sandbox/f${n}.txt` }])).toBe(2);
    expect(await together(agents.slice(2), (n) => write(`f${n + 2}.txt`, 10))).toBe(2);
    // Its parent is missing: it is decided, and fails.
    expect(await together(agents.slice(0, 1), () => write('none/f.txt', 80))).toBe(0);
    expect(await together(agents, (n) => write(`h${n}.txt`, 40))).toBe(2);
    expect(bytesIn(bench)).toBe(100);
  }));

test('C82: agents of different cases do not share a quota', () =>
  withBench(policy({ bytes_max: 100 }), async (bench) => {
    const cases = ['case-a', 'case-b', 'case-c'];
    const agents = await Promise.all(cases.map((case_id) => bench.turnpike.startAgent({ case: case_id })));
    expect(await together(agents, () => write('f.txt', 100))).toBe(3);
  }));

test('C82: an overwrite of a file that another action of the tick removes counts whole', () =>
  withBench(policy({ bytes_max: 100 }), async (bench) => {
    const agents = await agentsOf(bench, 3);
    expect(await together(agents.slice(0, 1), () => write('a.txt', 60))).toBe(1);
    const acts: (readonly [string, JsonObject])[] = [
      ['RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.txt' }],
      write('a.txt', 60),
    ];
    expect(await together(agents.slice(0, 2), (n) => acts[n] ?? write('a.txt', 60))).toBe(1);
    expect(bytesIn(bench)).toBe(60);
  }));

test('C39 C82: the input of a decision records the amount reserved by others, if there is any', () =>
  withBench(policy({ bytes_max: 1_000 }), async (bench) => {
    const agents = await agentsOf(bench, 3);
    await together(agents, (n) => write(`f${n}.txt`, 10));
    const facts = (await bench.entries()).flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'facts' ? [body] : [],
    );
    expect(facts.map(({ reserved }) => reserved)).toEqual([
      undefined,
      { bytes: 10, files: 1 },
      { bytes: 20, files: 2 },
    ]);
    expect(facts.map(({ facts: { usage } }) => usage)).toEqual(facts.map(() => ({ bytes: 0, files: 0 })));
  }));

/** A sandbox whose first changes wait until they are released. */
function slow(root: string): { sandbox: Sandbox; go: () => void; begun: () => boolean } {
  const inner = openSandbox({ root });
  let go: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  let hasBegun = false;
  const perform = (effect: Effect): EffectResult => {
    if (effect.action !== 'WRITE_FILE') return inner.perform(effect);
    hasBegun = true;
    return gate.then(() => inner.perform(effect)) as unknown as EffectResult;
  };
  const sandbox: Sandbox = {
    gather: (request) => inner.gather(request),
    perform,
    settle: (effect) => inner.settle(effect),
    forget: (case_id) => inner.forget(case_id),
  };
  return { sandbox, go, begun: () => hasBegun };
}

test('C82: a change in flight over several ticks stays reserved', async () => {
  const root = tempFolder('slow-sandbox');
  const { sandbox, go, begun } = slow(root);
  await withBench({ ...policy({ bytes_max: 100 }), sandbox }, async (bench) => {
    const agents = await agentsOf(bench, 2);
    const first = together(agents.slice(0, 1), () => write('a.txt', 60));
    while (!begun()) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = together(agents.slice(1), () => write('b.txt', 60));
    await new Promise((resolve) => setTimeout(resolve, 5));
    go();
    expect([await first, await second]).toEqual([1, 0]);
    expect(await together(agents.slice(1), () => write('b.txt', 40))).toBe(1);
  });
});
