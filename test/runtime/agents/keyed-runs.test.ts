// Agent runs with a key: they outlive their process, and the same key finds them again.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../../src/system/system-clock.js';
import type { AgentOptions } from '../../../src/runtime/agents/agent-run.js';
import { Bench } from '../../fixtures/bench.js';
import { modelOf, responsesTo, work } from '../../fixtures/mock-model.js';
import { proposal } from '../../fixtures/tree.js';

const APPROVALS =
  'approvals:\n  - { for: WRITE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
const WRITE = ['WRITE_FILE', { path: '/sandbox/a.md', content: 'Hello.\n' }] as const;
const AGENT = { key: 'task-1', case: 'case-0001', actor: 'clerk' } as const;
const TAXONOMY = { coa: 'coa-1', tags: 'tags-1', entities: 'entities-1' } as const;
const raw = (action: string, args: object = {}): string => JSON.stringify(proposal(action, args));

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open({ edit: (name, text) => (name === 'actions' ? `${text}\n${APPROVALS}` : text) });
});
afterEach(() => bench.close());

/** Another process with the same home; the earlier one has ended without a word. */
async function nextProcess(): Promise<void> {
  await bench.turnpike.close();
  bench = await Bench.reopen(bench);
}

describe('D3: startAgent with a key', () => {
  test('begins a remote run, and finds it again by the key, in this process and in the next', async () => {
    const first = await bench.turnpike.startAgent(AGENT);
    expect(first.resumed).toBe(false);
    const again = await bench.turnpike.startAgent(AGENT);
    expect([again.run_id, again.resumed]).toEqual([first.run_id, true]);
    await nextProcess();
    const later = await bench.turnpike.startAgent(AGENT);
    expect([later.run_id, later.resumed]).toEqual([first.run_id, true]);
    expect(await later.submit(raw('THINK'))).toMatchObject({ outcome: 'SUCCESS' });
    const created = (await bench.entries()).filter(({ type }) => type === 'run_created');
    expect(created.map(({ body }) => body)).toMatchObject([
      { run_kind: 'orchestrator' },
      { run_kind: 'agent', link: 'remote', run_id: first.run_id },
    ]);
    // The entries hold no key.
    expect(JSON.stringify(await bench.entries())).not.toContain('task-1');
  });

  test('a key is bound to the scope that its caller gives', async () => {
    const scoped = { ...AGENT, scope: { client_session_id: 'one' } };
    const { run_id } = await bench.turnpike.startAgent(scoped);
    expect(await bench.turnpike.startAgent(scoped)).toMatchObject({ run_id, resumed: true });
    expect(await bench.turnpike.startAgent(AGENT)).toMatchObject({ run_id, resumed: true });
    for (const scope of [{ client_session_id: 'two' }, {}, { ...scoped.scope, matter_id: 'M-1' }])
      await expect(bench.turnpike.startAgent({ ...AGENT, scope })).rejects.toMatchObject({ code: 'RUN_KEY_CONFLICT' });
  });

  test.each<[string, AgentOptions, AgentOptions]>([
    ['exposure', { exposure: 'decision' }, { exposure: 'detailed' }],
    ['idleMs', { idleMs: 5_000 }, { idleMs: 5_001 }],
    ['budget', { budget: { steps: 3 } }, { budget: { steps: 4 } }],
    ['budget', {}, { budget: { steps: 4 } }],
    ['correlation', { correlation: 'cor_one' }, { correlation: 'cor_two' }],
    ['taxonomy', { taxonomy: TAXONOMY }, { taxonomy: { ...TAXONOMY, tags: 'tags-2' } }],
    ['prompts', { prompts: ['Write.'] }, { prompts: ['Delete.'] }],
  ])('0078: a key is bound to %s (%j, not %j): the conflict is recorded once', async (name, given, other) => {
    const run = await bench.turnpike.startAgent({ ...AGENT, ...given });
    expect(await bench.turnpike.startAgent({ ...AGENT, ...given })).toMatchObject({ run_id: run.run_id });
    await expect(bench.turnpike.startAgent({ ...AGENT, idleMs: NaN })).rejects.toThrow('idleMs: a whole number');
    // A caller that does not give the option gets the run as it was started.
    expect(await bench.turnpike.startAgent(AGENT)).toMatchObject({ run_id: run.run_id });
    const refused = { code: 'RUN_KEY_CONFLICT', message: expect.stringContaining(name) as unknown };
    for (let time = 0; time < 2; time += 1)
      await expect(bench.turnpike.startAgent({ ...AGENT, ...other })).rejects.toMatchObject(refused);
    const { run_id } = run;
    await expect(bench.turnpike.remoteAgents.start({ ...AGENT, ...other })).rejects.toMatchObject(refused);
    const conflicts = (await bench.entries()).filter(
      ({ type, body }) => type === 'input' && body.kind === 'proposal' && body.input_id.startsWith('conflict:'),
    );
    expect(conflicts).toMatchObject([{ body: { run_id } }]);
    await run.end();
    await expect(bench.turnpike.startAgent({ ...AGENT, ...other })).rejects.toMatchObject(refused);
  });

  test('two starts at once begin one run', async () => {
    const runs = await Promise.all([1, 2, 3].map(() => bench.turnpike.startAgent(AGENT)));
    expect(new Set(runs.map(({ run_id }) => run_id)).size).toBe(1);
    expect((await bench.entries()).filter(({ type }) => type === 'run_created')).toHaveLength(2);
  });

  test.each([{ lane: 'NO_LANE' }, { role: 'NO_ROLE' }])(
    'two starts at once of a run that policy denies (%j) both learn its end',
    async (denied) => {
      const runs = await Promise.all([1, 2, 3].map(() => bench.turnpike.startAgent({ ...AGENT, ...denied })));
      const endings = await Promise.all(runs.map(({ finished }) => finished));
      expect(endings).toEqual([endings[0], endings[0], endings[0]]);
      expect(endings[0]).toMatchObject({ run_id: runs[0]!.run_id, state: 'denied' });
    },
  );

  test('another key gives another run', async () => {
    const { run_id } = await bench.turnpike.startAgent(AGENT);
    expect((await bench.turnpike.startAgent({ ...AGENT, key: 'task-2' })).run_id).not.toBe(run_id);
  });

  test.each<[string, AgentOptions]>([
    ['another actor', { actor: 'other' }],
    ['another person', { person: 'another person' }],
    ['another role', { role: 'CASE_AGENT' }],
    ['another lane', { lane: 'CASE_WORK' }],
    ['another case', { case: 'case-0002' }],
    ['the defaults', { case: 'case-local', actor: 'agent' }],
  ])('refuses the key for %s, while the run is live and after its end', async (_what, other) => {
    const run = await bench.turnpike.startAgent(AGENT);
    const refused = { code: 'RUN_KEY_CONFLICT' };
    await expect(bench.turnpike.startAgent({ ...AGENT, ...other })).rejects.toMatchObject(refused);
    await run.end();
    await expect(bench.turnpike.startAgent({ ...AGENT, ...other })).rejects.toMatchObject(refused);
    expect(await bench.turnpike.ledger.run(run.run_id)).toMatchObject({ status: 'completed' });
  });

  test('finds a run that has ended, with its ending; it takes no more proposals', async () => {
    const run = await bench.turnpike.startAgent(AGENT);
    const think = raw('THINK');
    const recorded = await run.submit(think, { inputId: 'think-1' });
    const ending = await run.end();
    await nextProcess();
    const again = await bench.turnpike.startAgent(AGENT);
    expect([again.run_id, again.resumed]).toEqual([run.run_id, true]);
    expect(await again.finished).toEqual(ending);
    expect(await again.end()).toEqual(ending);
    await expect(again.submit(raw('THINK'))).rejects.toMatchObject({ code: 'RUN_ENDED' });
    await expect(again.cancel('x')).rejects.toMatchObject({ code: 'RUN_ENDED' });
    expect(await again.submit(think, { inputId: 'think-1' })).toEqual(recorded);
    expect(await bench.turnpike.requests(run.run_id)).toEqual([]);
  });

  test('finds a run that policy has denied', async () => {
    const options = { ...AGENT, lane: 'NO_LANE' };
    const { run_id, finished } = await bench.turnpike.startAgent(options);
    expect(await finished).toMatchObject({ state: 'denied' });
    const again = await bench.turnpike.startAgent(options);
    expect([again.run_id, (await again.finished).state]).toEqual([run_id, 'denied']);
  });

  test.each(['', ' ', 'a b', 'ä', 'x'.repeat(129)])('%j is not a key', async (key) => {
    await expect(bench.turnpike.startAgent({ key })).rejects.toThrow('key: 1 to 128 printable ASCII characters');
  });

  test('refuses an attached run', async () => {
    await expect(bench.turnpike.startAgent({ ...AGENT, link: 'attached' })).rejects.toThrow('remote');
  });
});

describe('D7: a loop in the run of a key', () => {
  const start = () => bench.turnpike.startAgent(AGENT);

  test('continues in the next process: with the request, the conversation and the counts of the earlier one', async () => {
    const first = modelOf(['DELETE_FILE', { path: '/sandbox/run.sh' }], WRITE);
    const run = await start();
    const stopped = await work(bench, first, { run, clock: systemClock(), waitMs: 0 });
    expect(stopped).toMatchObject({ reason: 'approval_pending', counts: { steps: 2, denials: 2, tokens: 20 } });
    const [pending] = await bench.turnpike.requests(run.run_id);
    await nextProcess();
    const later = await start();
    expect(await bench.turnpike.requests(later.run_id)).toEqual([pending]);
    // The vote comes while no loop has the run.
    const vote = { run: later.run_id, digests: [pending!.digest], decision: 'approve' } as const;
    await bench.turnpike.approve({ ...vote, actor: 'anna', role: 'ATTORNEY_ADMIN' });
    await nextProcess();
    const second = modelOf();
    const report = await work(bench, second, { run: await start(), clock: systemClock() });
    expect(report).toMatchObject({ reason: 'finished', counts: { steps: 4, denials: 1, tokens: 30 } });
    expect(second.doGenerateCalls).toHaveLength(1);
    expect(responsesTo(second)).toEqual([
      expect.stringContaining('File extension is not allowed'),
      expect.stringContaining('[A person has approved this request since.'),
      expect.stringContaining('"outcome":"SUCCESS"'),
    ]);
  });

  test('shows a rejection of the time between two processes to the model', async () => {
    const run = await start();
    await work(bench, modelOf(WRITE), { run, clock: systemClock(), waitMs: 0 });
    const [pending] = await bench.turnpike.requests(run.run_id);
    const vote = { run: run.run_id, digests: [pending!.digest], decision: 'reject' } as const;
    await bench.turnpike.approve({ ...vote, actor: 'anna', role: 'ATTORNEY_ADMIN' });
    await nextProcess();
    const model = modelOf();
    expect(await work(bench, model, { run: await start() })).toMatchObject({ reason: 'finished' });
    expect(responsesTo(model)).toEqual([expect.stringContaining('[A person has rejected this request.')]);
  });

  test('returns the answer of a run that an earlier process has finished, and calls no model', async () => {
    const report = await work(bench, modelOf(['THINK']), { run: await start() });
    await nextProcess();
    const model = modelOf();
    const again = await work(bench, model, { run: await start() });
    expect(again).toEqual(report);
    expect(model.doGenerateCalls).toHaveLength(0);
  });

  test('its limits count the steps of all processes', async () => {
    const limits = { maxSteps: 2, whenStopped: 'leave' } as const;
    expect(await work(bench, modelOf(['THINK'], ['THINK']), { run: await start(), ...limits })).toMatchObject({
      reason: 'max_steps',
    });
    await nextProcess();
    const model = modelOf();
    expect(await work(bench, model, { run: await start(), ...limits })).toMatchObject({
      reason: 'max_steps',
      counts: { steps: 2 },
    });
    expect(model.doGenerateCalls).toHaveLength(0);
  });
});
