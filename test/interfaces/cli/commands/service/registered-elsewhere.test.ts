// Commands next to a service that has registered tools which the policy names. They have no code of the service.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Bench } from '../../../../fixtures/bench.js';
import { proposal } from '../../../../fixtures/tree.js';
import { refund, refundCall, refundEdit } from '../../../../host/conditions/refund-service.js';
import { turnpike, type Said } from '../../fake-io.js';

const CONDITIONS = `@id("refund_limit")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.args.amount > 100 };
`;
const edit: typeof refundEdit = (name, text) =>
  refundEdit(name, text).replace(
    'prohibits: [] }',
    'prohibits: [cross_case_lookup, external_export, shared_knowledge_write] }',
  );
let bench: Bench;

/** A command in the folder of the service; `serve` and its like are stopped at once. */
const command = (...argv: string[]): Promise<Said> =>
  turnpike(bench.folder, [...argv, '--home', bench.home, '--contract', bench.contract], { stop: AbortSignal.abort() });

beforeEach(async () => {
  bench = await Bench.open({ conditions: CONDITIONS, edit, approvals: true, tools: [refund] });
  const agent = await bench.turnpike.startAgent({ lane: 'CASE_WORK', role: 'CASE_AGENT', case: 'case-0001' });
  await agent.submit(refundCall(50));
  await agent.end();
});
afterEach(() => bench.close());

test.each([
  ['policy check', ['policy', 'check']],
  ['policy check --matrix', ['policy', 'check', '--matrix']],
  ['policy schema', ['policy', 'schema']],
  ['policy coverage', ['policy', 'coverage']],
  ['policy simulate', ['policy', 'simulate']],
  ['actions', ['actions']],
  ['doctor', ['doctor']],
])('`%s` knows the registrations of the ledger, while the service runs', async (_, argv) => {
  const said = await command(...argv);
  expect(said.stdout + said.stderr).not.toMatch(/does not load|condition\.type|POLICY_INVALID/);
  expect(said).toMatchObject({ code: 0 });
});

test('`serve`, `run` and `keys rotate` open the ledger of the service, and open runs under its policy', async () => {
  await bench.turnpike.close();
  expect(await command('serve', '--port', '0')).toMatchObject({ code: 0 });
  const stdin = JSON.stringify(proposal('THINK', {}));
  const where = ['--home', bench.home, '--contract', bench.contract];
  expect(await turnpike(bench.folder, ['run', '-', ...where], { stdin })).toMatchObject({ code: 0 });
  expect(await command('keys', 'rotate', '--cases', '--actor', 'olga', '--role', 'operator')).toMatchObject({
    code: 0,
  });
  bench = await Bench.reopen(bench, { tools: [refund] });
});

test('`restore` makes a home from a backup of the service', async () => {
  await bench.turnpike.close();
  const backup = join(bench.folder, 'backup');
  expect(await command('backup', backup, '--with-keys')).toMatchObject({ code: 0 });
  const restored = ['--home', join(bench.folder, 'restored'), '--contract', bench.contract];
  const given = ['restore', backup, '--actor', 'olga', '--no-erasures', ...restored];
  expect(await turnpike(bench.folder, given)).toMatchObject({ code: 0 });
  const acknowledged = ['restore', 'acknowledge', '--actor', 'olga', '--yes', ...restored];
  expect(await turnpike(bench.folder, acknowledged)).toMatchObject({ code: 0 });
  bench = await Bench.reopen(bench, { tools: [refund] });
});

test('a configured file of registrations serves a home that the service has never opened', async () => {
  writeFileSync(
    join(bench.folder, 'registrations.json'),
    JSON.stringify({ actions: [], tools: [refund.definition], targets: [] }),
  );
  const alone = ['policy', 'check', '--home', join(bench.folder, 'none'), '--contract', bench.contract];
  expect(await turnpike(bench.folder, alone)).toMatchObject({ code: 1 });
  writeFileSync(join(bench.folder, 'turnpike.yaml'), 'registrations: registrations.json\n');
  expect(await turnpike(bench.folder, alone)).toMatchObject({ code: 0 });
});
