// Policy settings, observed from outside: exposure, duplicate ids, denials, lanes without a write, missing pins.

import { all } from '../fixtures/entries.js';
import { homePaths, openHead, openHome } from '../../src/home/home.js';
import { expect, test } from '@jest/globals';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

const json = (value: object): string => JSON.stringify(value);

async function withBench(options: BenchOptions, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open(options);
  await work(bench);
  await bench.close();
}

const actions = (from: string | RegExp, to: string): BenchOptions => ({
  edit: (name, text) => {
    if (name !== 'actions') return text;
    const edited = text.replace(from, to);
    expect(edited).not.toBe(text);
    return edited;
  },
});

const REPLAY = actions(/duplicate_proposal_ids: reject/, 'duplicate_proposal_ids: replay');
const TERSE = actions(/exposure: detailed/, 'exposure: decision');

test('C19: by default a repeated proposal id in a run tree is rejected, and uses a step', () =>
  withBench({}, async ({ turnpike }) => {
    const agent = await turnpike.startAgent();
    const payload = json(proposal('THINK', {}));
    expect(await agent.submit(payload)).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.submit(payload)).toMatchObject({
      outcome: 'VALIDATION_ERROR',
      error: { error_code: 'DUPLICATE_PROPOSAL_ID' },
    });
    const upper = payload.replace(/"id":"[^"]+"/, (id) => id.toUpperCase().replace('"ID"', '"id"'));
    expect(await agent.submit(upper)).toMatchObject({ error: { error_code: 'DUPLICATE_PROPOSAL_ID' } });
    const other = await turnpike.startAgent();
    expect(await other.submit(payload)).toMatchObject({ outcome: 'SUCCESS' });
  }));

test('C19: under `replay` an identical payload gets the recorded response, is recorded as replay_of, and has no effect', () =>
  withBench(REPLAY, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    const read = json(proposal('READ_FILE', { path: '/sandbox/a.txt' }));
    bench.put('a.txt', 'first');
    const first = await agent.respond(read);
    bench.put('a.txt', 'second');
    expect(await agent.respond(read)).toBe(first);
    expect(await bench.bodies('step_trace')).toMatchObject([
      { step_index: 1, replay_of: null, outcome: 'SUCCESS' },
      { step_index: 2, replay_of: 1, outcome: 'SUCCESS', mediated_run_id: null },
    ]);
    const again = read.replace('/sandbox/a.txt', '/sandbox/b.txt');
    expect(await agent.submit(again)).toMatchObject({ error: { error_code: 'DUPLICATE_PROPOSAL_ID' } });
  }));

test('C19 D4: a repeated request with an id of another payload gets its own rejection again', () =>
  withBench(REPLAY, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    bench.put('a.txt', 'first');
    const read = json(proposal('READ_FILE', { path: '/sandbox/a.txt' }));
    const first = await agent.respond(read, { inputId: 'one' });
    const other = read.replace('/sandbox/a.txt', '/sandbox/b.txt');
    const refused = await agent.respond(other, { inputId: 'two' });
    expect(JSON.parse(refused)).toMatchObject({ error: { error_code: 'DUPLICATE_PROPOSAL_ID' }, result: null });
    expect(await agent.respond(other, { inputId: 'two' })).toBe(refused);
    expect(await agent.respond(read, { inputId: 'one' })).toBe(first);
  }));

test('C19: under `replay` every kind of outcome is returned unchanged', () =>
  withBench(REPLAY, async ({ turnpike }) => {
    const agent = await turnpike.startAgent();
    for (const payload of [
      proposal('THINK', {}),
      proposal('READ_FILE', { path: '/sandbox/none.txt' }),
      proposal('DELETE_FILE', { path: '/sandbox/none.sh' }),
      proposal('NO_SUCH', {}),
      proposal('WRITE_FILE', { path: '/sandbox/w.txt', content: 'w' }),
      proposal('LIST_FILES', { path: '/sandbox/' }),
      proposal('READ_FILE', { path: 'relative' }),
    ]) {
      const first = await agent.respond(json(payload));
      expect(await agent.respond(json(payload))).toBe(first);
      expect(await agent.respond(json(payload))).toBe(first);
    }
  }));

test('S2-10 S2-12 C01: under exposure `decision` an agent sees allow or deny, and nothing more', () =>
  withBench(TERSE, async (bench) => {
    bench.put('a.txt', 'text');
    const agent = await bench.turnpike.startAgent({ exposure: 'detailed' });
    const allowed = proposal('READ_FILE', { path: '/sandbox/a.txt' });
    const denied = proposal('DELETE_FILE', { path: '/sandbox/a.sh' });
    const missing = proposal('READ_FILE', { path: '/sandbox/b.txt' });
    const id = (of: Record<string, unknown>): string => String(of['id']);
    expect(await agent.respond(json(allowed))).toBe(
      `{"proposal_id":"${id(allowed)}","action":"READ_FILE","decision":"ALLOW","result":{"content":"text"}}`,
    );
    expect(await agent.respond(json(denied))).toBe(
      `{"proposal_id":"${id(denied)}","action":"DELETE_FILE","decision":"DENY","result":null}`,
    );
    expect(await agent.respond(json(missing))).toBe(
      `{"proposal_id":"${id(missing)}","action":"READ_FILE","decision":"ALLOW","result":null}`,
    );
    expect(await agent.respond('{')).toBe('{"proposal_id":null,"action":null,"decision":"DENY","result":null}');
  }));

test('D6: a caller may narrow the exposure', () =>
  withBench({}, async ({ turnpike }) => {
    const agent = await turnpike.startAgent({ exposure: 'decision' });
    expect(await agent.submit('{')).toEqual({ proposal_id: null, action: null, decision: 'DENY', result: null });
  }));

test('C51: after the permitted number of denials, the agent run itself is denied', () =>
  withBench(actions(/denials_per_run_max: \d+/, 'denials_per_run_max: 3'), async ({ turnpike }) => {
    const agent = await turnpike.startAgent();
    for (let i = 0; i < 3; i += 1) {
      expect(await agent.submit(json(proposal('DELETE_FILE', { path: '/sandbox/x.sh' })))).toMatchObject({
        outcome: 'DENIED',
      });
    }
    await expect(agent.finished).resolves.toMatchObject({ state: 'denied', reason: 'limit.denials' });
  }));

test('S4-29 C44: a policy without pins denies the run in `created` with UNPINNED', () =>
  withBench({ unpinned: true }, async (bench) => {
    const agent = await bench.turnpike.startAgent();
    await expect(agent.finished).resolves.toMatchObject({ state: 'denied', reason: 'pin.missing.lanes' });
    const [created] = await bench.bodies('run_created');
    expect(created?.policy_versions).toMatchObject({ lanes: 'UNPINNED', roles: 'UNPINNED', actions: 'UNPINNED' });
    await expect(agent.submit('{}')).rejects.toMatchObject({ code: 'RUN_ENDED' });
  }));

test('S4-84 D14: content of another case does not exist for this one', () =>
  withBench({}, async (bench) => {
    bench.put('secret.txt', 'of case one', 'case-one');
    const other = await bench.turnpike.startAgent({ case: 'case-two' });
    expect(await other.submit(json(proposal('READ_FILE', { path: '/sandbox/secret.txt' })))).toMatchObject({
      error: { message: 'File not found' },
    });
    expect(await other.submit(json(proposal('LIST_FILES', { path: '/sandbox/' })))).toMatchObject({
      result: { entries: [] },
    });
  }));

test.each([
  ['batch', 'after every step', true],
  ['tree_end', 'when its run tree ends, or the ledger is closed', false],
] as const)('D15: under `checkpoints: %s` the head is signed and written %s', (checkpoints, _when, atOnce) =>
  withBench(actions(/checkpoints: batch/, `checkpoints: ${checkpoints} # here`), async ({ turnpike, home }) => {
    const { externalHeadStore } = openHead(homePaths(home), { readOnly: true });
    const isWritten = async (): Promise<boolean> =>
      (await externalHeadStore.read())?.size === (await all(turnpike.ledger.log())).length;
    // It follows its commit, which does not wait for it.
    const written = async (): Promise<void> => {
      while (!(await isWritten())) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const agent = await turnpike.startAgent();
    await agent.submit(json(proposal('THINK', {})));
    if (atOnce) await written();
    else expect(await isWritten()).toBe(false);
    await agent.end();
    await written();
    await (await turnpike.startAgent()).submit(json(proposal('THINK', {})));
    await turnpike.close();
    const { store } = openHome(homePaths(home), { readOnly: true });
    expect((await externalHeadStore.read())?.size).toBe((await store.head()).size);
    await store.close();
  }),
);
