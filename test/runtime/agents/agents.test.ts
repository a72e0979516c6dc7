import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Bench } from '../../fixtures/bench.js';
import { lateStore, passTime } from '../../fixtures/late-store.js';
import { proposal } from '../../fixtures/tree.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

const json = (value: object): string => JSON.stringify(value);

test('S2-01 S2-05 S2-11 S1-03: an agent alternates proposals and responses until it finishes', async () => {
  const agent = await bench.turnpike.startAgent();
  const outcomes: unknown[] = [];
  for (const [action, args] of [
    ['CREATE_DIRECTORY', { path: '/sandbox/notes/' }],
    ['WRITE_FILE', { path: '/sandbox/notes/a.md', content: '# A\n' }],
    ['READ_FILE', { path: '/sandbox/notes/a.md' }],
    ['RENAME_FILE', { source: '/sandbox/notes/a.md', destination: '/sandbox/notes/b.md' }],
    ['LIST_FILES', { path: '/sandbox/notes/' }],
    ['DELETE_FILE', { path: '/sandbox/notes/b.md' }],
    ['FINISH', { response: 'Done.' }],
  ] as const) {
    outcomes.push(await agent.submit(json(proposal(action, args))));
  }
  expect(outcomes.map((response) => (response as { outcome: string }).outcome)).toEqual(Array(7).fill('SUCCESS'));
  expect(outcomes.map((response) => (response as { result: unknown }).result)).toEqual([
    {},
    { bytes_written: 4 },
    { content: '# A\n' },
    {},
    { entries: [{ name: 'b.md', type: 'file' }] },
    {},
    { response: 'Done.' },
  ]);
  await expect(agent.finished).resolves.toMatchObject({ state: 'completed', reason: 'finished' });
});

test('D15: a submission with `integrated` returns when the head covers its step, also a repeated one', async () => {
  const agent = await bench.turnpike.startAgent();
  const payload = json(proposal('THINK', {}));
  const integrated = { inputId: 'waited', integrated: true };
  const response = await agent.respond(payload, integrated);
  expect(await agent.respond(payload, integrated)).toBe(response);
  await agent.end();
  expect(await bench.turnpike.respond(agent.run_id, payload, integrated)).toBe(response);
});

test('D15: if the log does not include a step in time, the error has its response', async () => {
  const { store, delay, release } = lateStore();
  const late = await Bench.open({ store });
  const agent = await late.turnpike.startAgent();
  delay();
  const payload = json(proposal('THINK', {}));
  const waiting = agent.respond(payload, { inputId: 'late', integrated: true });
  const next = await agent.respond(json(proposal('THINK', {})));
  expect(next).toContain('SUCCESS');
  await passTime(late.clock, waiting);
  const response = await agent.respond(payload, { inputId: 'late' });
  await expect(waiting).rejects.toMatchObject({ code: 'NOT_INTEGRATED', response });
  release();
  await late.close();
});

test('D4: concurrent proposals are processed one at a time, in order', async () => {
  const agent = await bench.turnpike.startAgent();
  const payloads = Array.from({ length: 40 }, () => json(proposal('THINK', {})));
  const responses = await Promise.all(payloads.map((payload) => agent.submit(payload)));
  expect(responses.map(({ proposal_id }) => proposal_id)).toEqual(
    payloads.map((payload) => (JSON.parse(payload) as { id: string }).id),
  );
  const steps = (await bench.entries()).flatMap((entry) =>
    entry.type === 'step_trace' ? [entry.body.step_index] : [],
  );
  expect(steps).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
});

test('D4: the sixty-sixth waiting proposal is AGENT_BUSY, and not a step', async () => {
  const agent = await bench.turnpike.startAgent();
  const submissions = Array.from({ length: 66 }, () => agent.submit(json(proposal('THINK', {}))));
  const settled = await Promise.allSettled(submissions);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(65);
  expect(settled.at(-1)).toMatchObject({ status: 'rejected', reason: { code: 'AGENT_BUSY' } });
  expect((await bench.entries()).filter(({ type }) => type === 'step_trace')).toHaveLength(65);
});

test('D4 S4-24: a proposal to an ended run is the error RUN_ENDED, and not a step', async () => {
  const agent = await bench.turnpike.startAgent();
  await agent.submit(json(proposal('FINISH', { response: '' })));
  const size = (await bench.entries()).length;
  await expect(agent.submit(json(proposal('THINK', {})))).rejects.toMatchObject({ code: 'RUN_ENDED' });
  await expect(bench.turnpike.submit(agent.run_id, '{}')).rejects.toMatchObject({ code: 'RUN_ENDED' });
  await expect(bench.turnpike.submit('run_nowhere.1', '{}')).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
  expect((await bench.entries()).length).toBe(size);
});

test('D4: a repeated request id returns the recorded response without a second effect', async () => {
  const agent = await bench.turnpike.startAgent();
  const payload = json(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'once' }));
  const first = await agent.respond(payload, { inputId: 'request-1' });
  bench.put('a.txt', 'changed from outside');
  const size = (await bench.entries()).length;
  expect(await agent.respond(payload, { inputId: 'request-1' })).toBe(first);
  expect((await bench.entries()).length).toBe(size);
  const finish = json(proposal('FINISH', { response: 'bye' }));
  const last = await agent.respond(finish, { inputId: 'request-2' });
  expect(await agent.respond(payload, { inputId: 'request-1' })).toBe(first);
  // Also for a client that knows only the id of the run, long after its end.
  expect(await bench.turnpike.submit(agent.run_id, finish, { inputId: 'request-2' })).toEqual(JSON.parse(last));
  const opening = await bench.turnpike.ledger.entries(agent.root_run_id)[Symbol.asyncIterator]().next();
  expect(opening.done).toBe(false);
});

test('D5: the end of input completes the run as end_of_input, also after denials', async () => {
  const agent = await bench.turnpike.startAgent();
  await agent.submit(json(proposal('DELETE_FILE', { path: '/sandbox/run.sh' })));
  await expect(agent.end()).resolves.toMatchObject({ state: 'completed', reason: 'end_of_input' });
});

test('C53 S4-20: a cancel ends the agent run first and then its orchestrator', async () => {
  const agent = await bench.turnpike.startAgent();
  await expect(agent.cancel('no_longer_needed')).resolves.toMatchObject({ state: 'cancelled' });
  const ended = (await bench.entries()).flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.outcome_reason === 'cancelled:no_longer_needed'
      ? [entry.body.run_id]
      : [],
  );
  expect(ended).toEqual([agent.run_id, agent.root_run_id]);
  await expect(agent.cancel('again')).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
});

test('a cancel reason that is truncated inside a character stays valid', async () => {
  const agent = await bench.turnpike.startAgent();
  await expect(agent.cancel(`${'x'.repeat(159)}😀`)).resolves.toMatchObject({ state: 'cancelled' });
});

test.each([[''], ['x'.repeat(161)], ['\ud800']])(
  'D4: an input id that the ledger cannot store is a usage error: %j',
  async (inputId) => {
    const agent = await bench.turnpike.startAgent();
    await expect(agent.submit('{}', { inputId })).rejects.toMatchObject({ code: 'USAGE' });
    await expect(agent.submit('{}', { inputId: `${agent.run_id}/p1` })).rejects.toMatchObject({ code: 'USAGE' });
    expect(await agent.submit('{}')).toMatchObject({ outcome: 'VALIDATION_ERROR' });
  },
);

test('D3: a remote agent survives its process and is found by its id', async () => {
  const remote = await bench.turnpike.startAgent({ link: 'remote' });
  await remote.submit(json(proposal('THINK', {})));
  await bench.turnpike.close();
  await expect(remote.finished).rejects.toMatchObject({ code: 'CLOSED' });
  const again = await Bench.reopen(bench);
  const found = await again.turnpike.agent(remote.run_id);
  expect(await found?.submit(json(proposal('THINK', {})))).toMatchObject({ outcome: 'SUCCESS' });
  const ids = (await again.entries()).flatMap((entry) =>
    entry.type === 'input' && entry.body.kind === 'proposal' ? [entry.body.input_id] : [],
  );
  expect(new Set(ids).size).toBe(ids.length);
  await expect(found?.end()).resolves.toMatchObject({ state: 'completed' });
  await again.turnpike.close();
});

test('C51 S4-37: an unknown role denies the agent run itself, and the caller gets its ending', async () => {
  const agent = await bench.turnpike.startAgent({ role: 'NOBODY' });
  await expect(agent.finished).resolves.toMatchObject({ state: 'denied', reason: 'role.unknown' });
  await expect(agent.submit('{}')).rejects.toMatchObject({ code: 'RUN_ENDED' });
});

test("S4-57: two run trees of one request share the caller's correlation id", async () => {
  const first = await bench.turnpike.startAgent({ correlation: 'request-7' });
  const second = await bench.turnpike.startAgent({ correlation: 'request-7' });
  expect([first.correlation_id, second.correlation_id]).toEqual(['request-7', 'request-7']);
  const ids = (await bench.entries()).flatMap((entry) =>
    entry.type === 'run_created' ? [entry.body.correlation_id] : [],
  );
  expect(new Set(ids)).toEqual(new Set(['request-7']));
});

test('S4-30 S4-56: every run and event of a tree records the taxonomy versions of its work', async () => {
  const taxonomy = { coa: 'coa-2026.1', tags: 'tags-4' };
  const agent = await bench.turnpike.startAgent({ taxonomy });
  await agent.submit(json(proposal('LIST_FILES', { path: '/sandbox/' })));
  const versions = (await bench.entries()).flatMap((entry) =>
    entry.type === 'run_created' || entry.type === 'audit_event' ? [entry.body.taxonomy_versions] : [],
  );
  expect(versions.length).toBeGreaterThan(8);
  expect(versions.every((version) => JSON.stringify(version) === JSON.stringify(taxonomy))).toBe(true);
  await expect(bench.turnpike.startAgent({ taxonomy: { coa: 'x'.repeat(121) } })).rejects.toMatchObject({
    code: 'USAGE',
  });
});

test.each([
  ['case', { case: '../other' }],
  ['role', { role: 'a b' }],
  ['lane', { lane: '' }],
  ['actor', { actor: 'x' }],
  ['correlation', { correlation: '\u0000' }],
  ['scope', { scope: { coa_version: 'v'.repeat(401) } }],
  ['exposure', { exposure: 'all' as 'detailed' }],
  ['link', { link: 'loose' as 'remote' }],
  ['idle', { link: 'remote' as const, idleMs: 1.5 }],
  ['idle', { link: 'remote' as const, idleMs: Number.NaN }],
  ['scope', { scope: { 'coa\nversion': 'v' } }],
])('an option that violates the contract is a usage error and opens no tree: %s', async (_name, options) => {
  await expect(bench.turnpike.startAgent(options)).rejects.toMatchObject({ code: 'USAGE' });
  expect(await bench.entries()).toEqual([]);
});

test.each([
  [
    'too short',
    { case: 't9' },
    'case: "t9" is too short: an id has 4 to 80 characters of letters, digits, "_" and "-"',
  ],
  ['too long', { lane: 'L'.repeat(121) }, '" is too long: an id has 1 to 120 characters'],
  ['a wrong beginning', { role: '-agent' }, 'role: "-agent" begins with "-": an id has'],
  ['a wrong character', { correlation: 'a b' }, 'correlation: "a b" has the character " ": an id has'],
  ['a wrong character in a scope field', { scope: { 'x y': 'v' } }, 'scope: "x y" has the character " ": an id has'],
])('an id that breaks a rule is refused with that rule: %s', async (_name, options, message) => {
  await expect(bench.turnpike.startAgent(options)).rejects.toThrow(message);
});

test('a new agent run does not wait for busy ones', async () => {
  let started = false;
  const agents = await Promise.all(Array.from({ length: 8 }, () => bench.turnpike.startAgent()));
  const busy = agents.map(async (agent) => {
    for (let step = 0; step < 400; step += 1) {
      if (started) return true;
      await agent.submit(json(proposal('THINK', {})));
    }
    return false;
  });
  await bench.turnpike.startAgent();
  started = true;
  expect(await Promise.all(busy)).toEqual(Array(8).fill(true));
});

describe('payloads', () => {
  test('S0-14 S0-17 S0-18 C13: bytes that are not UTF-8 are rejected, and stored unchanged', async () => {
    const agent = await bench.turnpike.startAgent();
    const payload = Uint8Array.from([0x7b, 0xff, 0xfe, 0x7d]);
    expect(await agent.submit(payload)).toMatchObject({ error: { error_code: 'INVALID_ENCODING' } });
    expect(await rawPayloads()).toEqual([Buffer.from(payload)]);
  });

  test('S0-17: a string with a lone surrogate is rejected, and stored', async () => {
    const agent = await bench.turnpike.startAgent();
    expect(await agent.submit('{"a":"\ud800"}')).toMatchObject({ error: { error_code: 'INVALID_ENCODING' } });
    expect(await rawPayloads()).toEqual([Buffer.from('7b2261223a22eda080227d', 'hex')]);
  });

  test('S0-20 C80: a payload over the limit is rejected, and not stored completely', async () => {
    const agent = await bench.turnpike.startAgent();
    const payload = Buffer.alloc(400_000, 0x20);
    expect(await agent.submit(payload)).toMatchObject({ error: { error_code: 'PAYLOAD_TOO_LARGE' } });
    expect(await rawPayloads()).toEqual([]);
  });

  test('S0-17: a rejected payload of the maximum size is stored completely', async () => {
    const agent = await bench.turnpike.startAgent();
    const payload = Buffer.alloc(65_536, 0x20);
    expect(await agent.submit(payload)).toMatchObject({ error: { error_code: 'EMPTY_PAYLOAD' } });
    expect((await rawPayloads())[0]?.equals(payload)).toBe(true);
  });

  test('a payload that the caller changes after submitting it is recorded unchanged', async () => {
    const agent = await bench.turnpike.startAgent();
    const payload = Buffer.from(json(proposal('THINK', {})));
    const response = agent.submit(payload);
    payload.fill(0x20);
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
  });

  async function rawPayloads(): Promise<Buffer[]> {
    const payloads: Buffer[] = [];
    for await (const stored of bench.turnpike.ledger.log()) {
      for (const { kind, bytes } of requireContent(await bench.turnpike.ledger.artifactsOf(stored))) {
        if (kind === 'raw_payload') payloads.push(Buffer.from(bytes));
      }
    }
    return payloads;
  }
});
