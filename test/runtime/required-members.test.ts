// Calls of JavaScript without a member that they need: a coded error names it, and nothing is recorded. A promotion
// without a ticket is denied (S4-71).

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { requireMembers } from '../../src/runtime/required-members.js';
import type { Turnpike } from '../../src/host/turnpike.js';
import { Bench } from '../fixtures/bench.js';
import { service } from '../fixtures/service.js';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open({ targets: service().targets });
});
afterAll(() => bench.close());

const BY = { actor: 'anna', role: 'ATTORNEY_ADMIN' };
const PROMOTION = { ...BY, case: 'case-0001', target: 'shared_playbooks', record: { id: 'p', text: 'Ask first.' } };
const CALLS: Readonly<
  Record<
    string,
    { readonly whole: object; readonly needs: readonly string[]; readonly call: (given: never) => unknown }
  >
> = {
  promote: {
    whole: { ...PROMOTION, ticket: 'T-1' },
    needs: ['actor', 'role', 'target', 'record'],
    call: (given: Parameters<Turnpike['promote']>[0]) => bench.turnpike.promote(given),
  },
  export: {
    whole: { ...BY, case: 'case-0001', reason: 'audit', destination: 'bag' },
    needs: ['actor', 'role', 'reason', 'destination'],
    call: (given: Parameters<Turnpike['export']>[0]) => bench.turnpike.export(given),
  },
  approve: {
    whole: { ...BY, run: 'run_x.1', digests: ['0'.repeat(64)], decision: 'approve' },
    needs: ['actor', 'role', 'run', 'digests', 'decision'],
    call: (given: Parameters<Turnpike['approve']>[0]) => bench.turnpike.approve(given),
  },
  resolve: {
    whole: { ...BY, run: 'run_x.1', outcome: 'done' },
    needs: ['actor', 'role', 'run', 'outcome'],
    call: (given: Parameters<Turnpike['resolve']>[0]) => bench.turnpike.resolve(given),
  },
  submit: {
    whole: { run: 'run_x.1', raw: '{}' },
    needs: ['run', 'raw'],
    call: ({ run, raw }: { readonly run: string; readonly raw: string }) => bench.turnpike.submit(run, raw),
  },
};
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
const WRONG: readonly unknown[] = [undefined, null, 7, {}, []];
const ALL = Object.entries(CALLS).flatMap(([name, { whole, needs, call }]) =>
  needs.flatMap((member) =>
    WRONG.filter(
      (value) => !(member === 'digests' && Array.isArray(value)) && !(member === 'record' && isObject(value)),
    ).map((value) => ({ name, member, value, run: () => call({ ...whole, [member]: value } as never) })),
  ),
);

test.each(ALL)('$name with $member as $value throws UsageError, and records nothing', async ({ member, run }) => {
  const before = await bench.turnpike.ledger.size();
  const error: unknown = await Promise.resolve()
    .then(run)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'UsageError', code: 'USAGE' });
  expect(String(error)).toMatch(new RegExp(`${member === 'raw' ? 'payload' : member}: `));
  expect(await bench.turnpike.ledger.size()).toEqual(before);
});

describe('S4-71: a promotion without a ticket', () => {
  test.each([undefined, '', ' '])('%j: is a denied run with an audit event', async (ticket) => {
    const given = ticket === undefined ? PROMOTION : { ...PROMOTION, ticket };
    const run = await bench.turnpike.promote(given as Parameters<Turnpike['promote']>[0]);
    expect(await run.finished).toMatchObject({ state: 'denied', reason: 'scope.missing.promotion_ticket_id' });
    const denials = [];
    for await (const { type, body } of bench.turnpike.ledger.entries(run.run_id)) {
      if (type === 'audit_event' && body.authz?.decision === 'deny') denials.push(body.authz.rule_id);
    }
    expect(denials).toEqual(['scope.missing.promotion_ticket_id']);
  });
});

test('the entries of a child run are those that name it', async () => {
  const agent = await bench.turnpike.startAgent({ case: 'case-0001' });
  const body = { action: 'LIST_FILES', args: { path: '/sandbox/' } };
  const head = { schema_version: '1.0.0', id: '00000000-0000-4000-8000-000000000001', reasoning: 'Look.' };
  await agent.submit(JSON.stringify({ ...head, ...body }));
  const all = [];
  for await (const entry of bench.turnpike.ledger.entries(agent.root_run_id)) all.push(entry);
  for (const run_id of [agent.run_id, `${agent.run_id}.1`, `${agent.run_id}.99`]) {
    const own = [];
    for await (const { seq } of bench.turnpike.ledger.entries(run_id)) own.push(seq);
    expect(own).toEqual(all.flatMap(({ seq, body: of }) => ('run_id' in of && of.run_id === run_id ? [seq] : [])));
    expect(own.length > 2).toBe(run_id !== `${agent.run_id}.99`);
  }
});

test('names the first member that is missing or of another kind', () => {
  expect(() => requireMembers({ a: 'x', b: {} }, { a: 'text', b: 'object' })).not.toThrow();
  expect(() => requireMembers(undefined as never, {})).toThrow('options: they are missing');
  expect(() => requireMembers({ a: 'x' }, { a: 'text', b: 'object' })).toThrow('b: it is missing');
  expect(() => requireMembers({ a: [7] }, { a: 'texts' })).toThrow('a: it is not a list of texts');
});
