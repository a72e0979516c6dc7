// Serial scenarios whose entries are the same on every engine and in every store: time changes only when a scenario
// changes it, ids are counted, and files are a model.

import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import Type from 'typebox';
import { sqlDatabase } from '../../src/stores/records/sql-database.js';
import { manifestPolicySource } from '../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { Sequencer } from '../../src/engine/sequencer.js';
import type { EngineFactory } from '../../src/engine/tree-engine.js';
import type { Clock } from '../../src/engine/ports/clock.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { defineTarget } from '../../src/runtime/effects/define-effects.js';
import { openStorageEnvironment } from '../../src/host/storage-environment.js';
import { openTurnpikeIn, type Turnpike } from '../../src/host/turnpike.js';
import { countedIds, writeContract } from '../fixtures/bench.js';
import { CASE_AGENT, service, type World } from '../fixtures/service.js';
import { testSecrets } from '../fixtures/session.js';
import { suiteFolder, tempFolder } from '../fixtures/temp-folder.js';
import { edit } from '../features/backup/copy/rich-ledger.js';
import { ModelFiles } from '../simulation/model-files.js';

/** An engine on an empty store. */
export interface HistoryGround {
  readonly store: LedgerStore;
  readonly engine: EngineFactory;
}

/** Time that changes only by `advance`. */
class SteppedClock implements Clock {
  #now = Date.parse('2026-04-01T08:00:00.000Z');
  #waiting: { readonly at: number; readonly ring: () => void }[] = [];

  now = (): number => this.#now;

  wake(at: number, ring: () => void): () => void {
    const timer = { at, ring };
    this.#waiting.push(timer);
    return () => void (this.#waiting = this.#waiting.filter((other) => other !== timer));
  }

  advance(ms: number): void {
    this.#now += ms;
    const due = this.#waiting.filter(({ at }) => at <= this.#now).sort((one, other) => one.at - other.at);
    this.#waiting = this.#waiting.filter(({ at }) => at > this.#now);
    for (const { ring } of due) ring();
  }
}

interface Scene {
  readonly turnpike: Turnpike;
  readonly clock: SteppedClock;
  readonly world: World;
  /** A proposal with the next id of the scenario. */
  readonly raw: (action: string, args: object) => string;
}

type Scenario = (scene: Scene) => Promise<void>;

const BY = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
const APPROVAL_MS = 5 * 60_000;
const path = (name: string) => ({ path: `/sandbox/${name}` });

async function work({ turnpike, raw }: Scene): Promise<void> {
  const agent = await turnpike.startAgent({ case: 'case-1' });
  const write = raw('WRITE_FILE', { ...path('note.md'), content: 'first' });
  const steps = [raw('THINK', {}), write, write, 'no JSON', raw('READ_FILE', { path: '/etc/passwd' })];
  steps.push(raw('READ_FILE', path('note.md')), raw('WRITE_FILE', { ...path('note.md'), content: 'second' }));
  steps.push(raw('LIST_FILES', { path: '/sandbox/' }), raw('NO_SUCH_ACTION', {}), raw('READ_FILE', path('none.md')));
  steps.push(raw('FINISH', { response: 'Done.' }));
  for (const step of steps) await agent.submit(step);
  await turnpike.startAgent({ lane: 'NO_SUCH_LANE' });
}

async function tools({ turnpike, world, raw }: Scene): Promise<void> {
  const agent = await turnpike.startAgent({ ...CASE_AGENT, case: 'case-1' });
  const charge = (amount: number) => raw('CALL_TOOL', { tool: 'billing.charge', input: { amount } });
  for (const mode of ['answer', 'refuse', 'nonsense', 'lose'] as const) {
    world.mode = mode;
    await agent.submit(charge(1));
  }
  await agent.end();
}

async function people({ turnpike, clock }: Scene): Promise<void> {
  for (const [n, decision] of ['approve', 'reject', 'expire'].entries()) {
    const record = { id: `p-${n}`, text: 'Ask first.' };
    const promotion = { ...BY, case: 'case-1', ticket: 'T-1', target: 'shared_playbooks', record };
    const run = await turnpike.promote(promotion);
    const ballot = { run: run.run_id, digests: [run.digest ?? ''], ...BY, actor: 'berta' };
    if (decision === 'expire') clock.advance(APPROVAL_MS + 1);
    else await turnpike.approve({ ...ballot, decision: decision === 'approve' ? 'approve' : 'reject' });
    await run.finished;
  }
}

async function exports(scene: Scene): Promise<void> {
  const { turnpike } = scene;
  await work(scene);
  const bag = { ...BY, case: 'case-1', reason: 'a request', destination: 'bag', format: 'folder' } as const;
  await (
    await turnpike.export(bag)
  ).finished;
}

async function session({ turnpike, raw }: Scene): Promise<void> {
  const by = { actor: 'anna', role: 'maintainer' } as const;
  const tasks = ['one', 'two', 'three'].map((id) => ({ id, title: id, instruction: `Do ${id}.` }));
  const spec = { spec_version: 1, id: 'small', title: 'Small', phases: [{ id: 'only', title: 'Only', tasks }] };
  // One path for all runs of a suite: it is recorded.
  const file = join(suiteFolder('spec'), 'spec.json');
  writeFileSync(file, JSON.stringify(spec));
  const { data } = await turnpike.sessions.start({ spec: file, case: 'case-local', by });
  const id = data?.session_id ?? '';
  const first = await turnpike.sessions.next(id, { context_usage_pct: 1 }, by);
  const { step_id, type, step_proof, task_id, run_id } = first.data?.next_step as unknown as Record<string, string>;
  await turnpike.submit(run_id ?? '', raw('WRITE_FILE', { ...path('one.txt'), content: 'one' }));
  const report = { step_id, step_type: type, outcome: 'success', step_proof, task_id };
  for (let n = 0; n < 2; n += 1)
    await turnpike.sessions.next(id, { last_step_result: report, context_usage_pct: 2 }, by);
  await turnpike.sessions.pause(id, { reason: 'lunch' }, by);
}

async function remoteAndErasure({ turnpike, clock, raw }: Scene): Promise<void> {
  const agent = await turnpike.startAgent({ case: 'case-2', link: 'remote' });
  await turnpike.submit(agent.run_id, raw('WRITE_FILE', { ...path('secret.md'), content: 'secret' }));
  clock.advance(1_000);
  await turnpike.remoteAgents.end(agent.run_id);
  await turnpike.erase({ case: 'case-2', actor: 'operator' });
  const again = await turnpike.startAgent({ case: 'case-2' });
  await again.submit(raw('READ_FILE', path('secret.md')));
  await again.end();
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'steps of an agent': work,
  'tool calls': tools,
  'promotions: approved, rejected, expired': people,
  'an export': exports,
  'a session': session,
  'a remote agent, an erasure, and the case again': remoteAndErasure,
};

function countedProposals(): Scene['raw'] {
  let count = 0;
  return (action, args) => {
    const id = `00000000-0000-4000-8000-${String((count += 1)).padStart(12, '0')}`;
    return JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'It is needed.', action, args });
  };
}

const modelSandbox = (): Sandbox => {
  const files = new ModelFiles();
  return {
    gather: ({ case_id, paths, usage }) => ({
      paths: paths.map((one) => files.fact(case_id, one)),
      usage: usage ? files.usage(case_id) : null,
    }),
    perform: (effect) => files.act(effect),
    settle: () => ({ status: 'unknown' }),
  };
};

/** Runs a scenario. @returns the texts of all entries in the order of the log, each with its content */
export async function recordHistory(name: string, { store, engine }: HistoryGround): Promise<readonly string[]> {
  const folder = tempFolder('history');
  writeContract(join(folder, 'contract'), { edit });
  const [clock, sandbox] = [new SteppedClock(), modelSandbox()];
  const { world, tools: charge } = service();
  const playbooks = defineTarget({
    name: 'shared_playbooks',
    record: Type.Object({ id: Type.String(), text: Type.String() }, { additionalProperties: false }),
    key: ['id'],
    plane: 'shared',
    database: sqlDatabase({ url: `sqlite:${join(folder, 'knowledge.db')}`, create: true }),
  });
  const environment = await openStorageEnvironment(store, {});
  const turnpike = await openTurnpikeIn(
    { ...environment, engine, secrets: testSecrets },
    {
      ...{ store, sandbox, clock, exports: folder, log: winstonLog('silent'), ids: countedIds() },
      ...{ policies: manifestPolicySource(join(folder, 'contract')), tools: charge, targets: [playbooks] },
    },
  );
  try {
    await SCENARIOS[name]?.({ turnpike, clock, world, raw: countedProposals() });
    await new Sequencer(store, () => undefined).run();
    const { size } = await store.head();
    const texts: string[] = [];
    for await (const entry of turnpike.ledger.log()) {
      const contents = await store.artifactsOf(entry);
      texts.push([entry.text, ...contents.map((content) => contentText(content))].join('\n'));
    }
    if (texts.length !== size || size === 0) throw new Error(`the log has ${texts.length} of ${size} entries`);
    return texts;
  } finally {
    await turnpike.close();
  }
}

type Content = Awaited<ReturnType<LedgerStore['artifactsOf']>>[number];

const contentText = (content: Content): string =>
  'bytes' in content ? `${content.kind} ${Buffer.from(content.bytes).toString()}` : JSON.stringify(content);
