// Executors that break their contract: nothing partial is committed, every caller gets an answer, and the next opening
// can settle what is left.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import type { EffectResult } from '../../src/core/contract/run/effect.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { Bench } from '../fixtures/bench.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const json = (value: object): string => JSON.stringify(value);
const WRITE = (): string => json(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
const READ = (): string => json(proposal('READ_FILE', { path: '/sandbox/a.txt' }));

let folder: string;
let real: Sandbox & { close(): void };
beforeEach(() => {
  folder = tempFolder('hands');
  mkdirSync(join(folder, 'case-local'));
  real = openSandbox({ root: folder });
});
afterEach(() => {
  real.close();
  rmSync(folder, { recursive: true, force: true });
});

const handsThat = (broken: Partial<Sandbox>): Sandbox => ({
  gather: (request) => real.gather(request),
  perform: (effect) => real.perform(effect),
  settle: (effect) => real.settle(effect),
  ...broken,
});

const fails = (): never => {
  throw new Error('a bug of the executor');
};
const nothing = (() => undefined) as unknown as () => never;
const noResult = (() => ({ status: 'done' })) as unknown as () => never;
const endless: Record<string, unknown> = {};
endless['self'] = endless;
const evil = (() => ({
  get status(): never {
    throw new Error('a trap');
  },
})) as unknown as () => never;
const disguised = (() => ({ status: 'done', result: { toJSON: () => 'text' } })) as unknown as () => never;
const circular = (() => ({ status: 'done', result: endless })) as unknown as () => never;

async function working(sandbox: Sandbox, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open({ store: memoryStore(), sandbox });
  await work(bench);
  expect(await bench.turnpike.ledger.verify()).toMatchObject({ ok: true });
  expect(await bench.turnpike.replay()).toMatchObject({ ok: true });
  await bench.close();
}

describe.each([
  ['throws', fails],
  ['answers nothing', nothing],
  ['answers with a trap', evil],
])('when gather %s', (_what, gather) => {
  test('the step is denied or fails, and the run continues', () =>
    working(handsThat({ gather }), async ({ turnpike }) => {
      const agent = await turnpike.startAgent();
      expect(await agent.submit(WRITE())).toMatchObject({ outcome: 'DENIED' });
      expect(['DENIED', 'EXECUTION_ERROR']).toContain(((await agent.submit(READ())) as { outcome: string }).outcome);
      await expect(agent.end()).resolves.toMatchObject({ state: 'completed' });
    }));
});

describe('when gather reuses its result object', () => {
  /** Refused the first time, a file the second time, in the same object. */
  const forgetful = (): Sandbox['gather'] => {
    const facts = { paths: [] as object[], usage: null };
    return () => {
      facts.paths[0] =
        facts.paths.length === 0
          ? { status: 'refused', kind: 'symlink' }
          : { status: 'file', bytes: 5, inode: '1', mtime_ns: '1' };
      return facts as never;
    };
  };
  const spoilt = (): Sandbox['gather'] => {
    const fact = { status: 'file', bytes: 5, inode: '1', mtime_ns: '1' };
    let calls = 0;
    return () => {
      calls += 1;
      fact.bytes = calls === 1 ? 5 : Number.NaN;
      return { paths: [fact], usage: null } as never;
    };
  };

  test.each([
    ['S0-49: is denied or allowed by its own facts', forgetful, ['DENIED', 'SUCCESS']],
    ['has the facts that it was judged by in the ledger', spoilt, ['SUCCESS', 'SUCCESS']],
  ])('each of two reads in one tick %s', (_what, gather, outcomes) =>
    working(
      handsThat({ gather: gather(), perform: () => ({ status: 'done', result: { content: 'x' } }) }),
      async ({ turnpike }) => {
        const agents = [await turnpike.startAgent(), await turnpike.startAgent()];
        const responses = await Promise.all(agents.map((agent) => agent.submit(READ())));
        expect(responses.map((response) => (response as { outcome: string }).outcome)).toEqual(outcomes);
        for (const agent of agents) await agent.end();
      },
    ),
  );
});

describe.each([
  ['throws', fails],
  ['answers nothing', nothing],
  ['is done without a result', noResult],
  ['is done with a result that has no JSON', circular],
  ['is done with a result whose JSON is no object', disguised],
  ['answers with a trap', evil],
])('S0-54: when the executor %s', (_what, perform) => {
  test.each([
    ['a change', WRITE],
    ['a read', READ],
  ])('%s has an unknown outcome, and the run continues', (_kind, payload) =>
    working(handsThat({ perform }), async ({ turnpike }) => {
      const agent = await turnpike.startAgent();
      expect(await agent.submit(payload())).toMatchObject({
        outcome: 'EXECUTION_ERROR',
        error: { error_code: 'EXECUTION_ERROR', message: 'It is not known whether the action happened' },
      });
      expect(await agent.submit(json(proposal('THINK', {})))).toMatchObject({ outcome: 'SUCCESS' });
      await expect(agent.end()).resolves.toMatchObject({ state: 'completed' });
    }),
  );
});

test('D8: when settle throws, the outcome is unknown, and the home opens nevertheless', async () => {
  const state = new LedgerModel();
  let release: (result: EffectResult) => void = () => undefined;
  const late = (): never => new Promise<EffectResult>((resolve) => (release = resolve)) as never;
  const first = await Bench.open({ store: modelStore(state), sandbox: handsThat({ perform: late }) });
  const agent = await first.turnpike.startAgent();
  const unanswered = agent.submit(WRITE());
  while (!(await first.entries()).some((entry) => entry.type === 'run_created' && entry.body.run_kind === 'db_write')) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  // A process that dies here commits nothing more; another one takes the ledger.
  state.loseLock();
  const bench = await Bench.open({ store: modelStore(state), sandbox: handsThat({ settle: fails }) });
  expect(bench.turnpike.recovery).toMatchObject({ trees: 1, settled: 1, interrupted: 1, damaged: 0 });
  const traces = (await bench.entries()).flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.cause] : []));
  expect(traces).toEqual(['OUTCOME_UNKNOWN']);
  expect(await bench.turnpike.replay()).toMatchObject({ ok: true });
  // The first process is not dead: it can no longer record what it receives now.
  release({ status: 'unknown' });
  expect(await unanswered).toMatchObject({ error: { error_code: 'AUDIT_FAILURE' } });
  await first.close();
  await bench.close();
});
