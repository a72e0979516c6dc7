// The id of a request is bound to its payload: another payload under it is refused, and recorded.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

const write = (content: string): string => JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content }));
const CONFLICT = { name: 'RunError', code: 'IDEMPOTENCY_CONFLICT' };

/** The outcomes of the steps, and the inputs that were refused. */
async function recorded(): Promise<readonly string[]> {
  return (await bench.entries()).flatMap(({ type, body }) => {
    if (type === 'step_trace') return [`${body.outcome} ${body.rule_id ?? ''}`.trim()];
    return type === 'audit_event' && body.error?.error_code === 'INVALID_STATE_TRANSITION' ? ['refused'] : [];
  });
}

describe('D4: an id of a request that was used for another payload', () => {
  test('is a conflict, which executes nothing and is recorded once', async () => {
    const agent = await bench.turnpike.startAgent();
    const first = await agent.respond(write('one'), { inputId: 'request-1' });
    const other = write('two');
    await expect(agent.respond(other, { inputId: 'request-1' })).rejects.toMatchObject(CONFLICT);
    await expect(agent.respond(other, { inputId: 'request-1' })).rejects.toMatchObject(CONFLICT);
    expect(await recorded()).toEqual(['SUCCESS', expect.stringMatching(/^DENIED /)]);
    expect(await agent.respond(write('three'), { inputId: 'request-2' })).toContain('SUCCESS');
    await expect(agent.respond(write('four'), { inputId: 'request-1' })).rejects.toMatchObject(CONFLICT);
    expect((await recorded()).slice(2)).toEqual(['SUCCESS', expect.stringMatching(/^DENIED /)]);
    expect(first).toContain('SUCCESS');
  });

  test('is one among requests that arrive together', async () => {
    const agent = await bench.turnpike.startAgent();
    const payloads = ['one', 'two', 'three'].map(write);
    const settled = await Promise.allSettled(payloads.map((text) => agent.respond(text, { inputId: 'request-1' })));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(settled[1]).toMatchObject({ reason: CONFLICT });
  });

  test('is one after a restart, and for a run that has ended, whose record refuses it too', async () => {
    const { run_id } = await bench.turnpike.startAgent({ link: 'remote' });
    const payload = write('one');
    const first = await bench.turnpike.respond(run_id, payload, { inputId: 'request-1' });
    await bench.turnpike.close();
    bench = await Bench.reopen(bench);
    await expect(bench.turnpike.respond(run_id, write('two'), { inputId: 'request-1' })).rejects.toMatchObject(
      CONFLICT,
    );
    await bench.turnpike.remoteAgents.end(run_id);
    expect(await bench.turnpike.respond(run_id, payload, { inputId: 'request-1' })).toBe(first);
    await expect(bench.turnpike.respond(run_id, write('six'), { inputId: 'request-1' })).rejects.toMatchObject(
      CONFLICT,
    );
    expect(await recorded()).toEqual(['SUCCESS', expect.stringMatching(/^DENIED /), 'refused']);
  });

  test('may be that of another input of the tree', async () => {
    const agent = await bench.turnpike.startAgent({ key: 'invoice-1' });
    const [{ body } = { body: null }] = (await bench.entries()).filter(
      (entry) => entry.type === 'input' && entry.body.kind === 'start_agent',
    );
    const { input_id } = body as unknown as { readonly input_id: string };
    await expect(agent.respond(write('one'), { inputId: input_id })).rejects.toMatchObject(CONFLICT);
  });

  test('ends no loop of conflicts: a record of one has an id of its own', async () => {
    const agent = await bench.turnpike.startAgent();
    await agent.respond(write('one'), { inputId: 'request-1' });
    await expect(agent.respond(write('two'), { inputId: 'request-1' })).rejects.toMatchObject(CONFLICT);
    const ids = (await bench.entries()).flatMap((entry) =>
      entry.type === 'input' && entry.body.kind === 'proposal' ? [entry.body.input_id] : [],
    );
    expect(ids[1]).toMatch(/^conflict:[0-9a-f]{64}$/);
    await expect(agent.respond(write('three'), { inputId: ids[1] ?? '' })).rejects.toMatchObject(CONFLICT);
    expect(await recorded()).toHaveLength(2);
  });
});

test('D4: a caller that no longer has the payload gets the recorded response by its hash', async () => {
  const { run_id } = await bench.turnpike.startAgent({ link: 'remote' });
  const payload = write('one');
  const first = await bench.turnpike.respond(run_id, payload, { inputId: 'request-1' });
  const [entry] = (await bench.entries()).filter(({ type, body }) => type === 'input' && body.kind === 'proposal');
  const { payload: ref } = entry?.body as unknown as { readonly payload: { readonly hash_sha256: string } };
  const recall = { inputId: 'request-1', payloadSha256: ref.hash_sha256 };
  expect(await bench.turnpike.respond(run_id, '', recall)).toBe(first);
  await expect(bench.turnpike.respond(run_id, '', { ...recall, inputId: 'request-2' })).rejects.toMatchObject({
    code: 'RUN_ENDED',
  });
});
