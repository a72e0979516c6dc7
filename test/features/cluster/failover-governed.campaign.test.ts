// C101: whether a ledger that has lost entries goes on is decided by policy, as about a restore.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { finish, tempFolder, turnpike as command, write, type Said } from '../../interfaces/cli/fake-io.js';
import { writeContract } from '../../fixtures/bench.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { execute } from '../../stores/postgres/postgres-harness.js';

const server = await startPostgres({ isDurable: true });
const other = await startPostgres({ isDurable: true });
const isMissing = server === null || other === null;

afterAll(async () => {
  await server?.stop();
  await other?.stop();
});

/** A process that names no database of heads has them in its key folder only. */
const PLACES: readonly { readonly place: string; readonly environment: Readonly<Record<string, string>> }[] = [
  { place: 'files', environment: {} },
  { place: 'table', environment: { TURNPIKE_HEADS: other?.url ?? '' } },
];

(isMissing ? describe.skip.each(PLACES) : describe.each(PLACES))('the acceptance of a failover ($place)', (world) => {
  const { place, environment } = world;
  const [newer, older, lost] = ['newer', 'older', 'lost'].map((name) => `${name}_${place}`) as [string, string, string];
  const folder = tempFolder('failover-governed');
  const urlOf = (database: string): string => {
    const url = new URL(server?.url ?? '');
    url.pathname = `/${database}`;
    return url.href;
  };
  const at = (...argv: string[]): Promise<Said> =>
    command(folder, [...argv, '--home', join(folder, 'one')], { environment });
  const accept = (contract: string, ...more: string[]): Promise<Said> =>
    at('failover', 'accept', '--contract', join(folder, contract), '--actor', 'olga', '--yes', ...more);
  const lane = (name: string, text: string): string => {
    if (name === 'roles')
      return `${text.trimEnd()}
  - role_id: ARCHIVIST
    description: A keeper of the ledger.
    class: human
    privileges: { lanes: [LEDGER_OPERATIONS] }
`;
    if (name !== 'lanes') return text;
    return `${text.trimEnd()}
  - lane_id: LEDGER_OPERATIONS
    purpose: Acts of operators on the ledger.
    allowed_callers: { roles: [ARCHIVIST] }
    allowed_actions: { tools: [ledger.restore] }
    scope: { requires: [], prohibits: [] }
    audit: { required: true, level: full }
`;
  };
  const forbid = (annotations = ''): string =>
    `@id("held")\n${annotations}forbid (principal, action == Action::"restore", resource);\n`;

  beforeAll(async () => {
    writeContract(join(folder, 'contract'), {});
    writeContract(join(folder, 'denies'), { conditions: forbid() });
    writeContract(join(folder, 'limits'), { edit: lane });
    writeContract(join(folder, 'asks'), { conditions: forbid('@approvals("1")\n@approver_role("ATTORNEY_ADMIN")\n') });
    await execute(server?.url ?? '', `CREATE DATABASE ${newer}`);
    const shared = ['init', '--store', urlOf(newer), '--home', join(folder, 'one'), '--unsafe-shared'];
    expect(await command(folder, shared)).toMatchObject({ code: 0 });
    const work = (name: string) =>
      command(folder, ['run', '-', '--home', join(folder, 'one'), '--contract', join(folder, 'contract')], {
        stdin: [write(`/sandbox/${name}.txt`, 'a'), finish()].join('\n'),
        environment,
      });
    expect(await work('a')).toMatchObject({ code: 0 });
    // The standby that took over has the first run only.
    await execute(server?.url ?? '', `CREATE DATABASE ${older} TEMPLATE ${newer}`);
    expect(await work('b')).toMatchObject({ code: 0 });
    for (const [name, to] of [
      [newer, lost],
      [older, newer],
    ])
      await execute(server?.url ?? '', `ALTER DATABASE ${name} RENAME TO ${to}`);
  }, 240_000);
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  test('is denied by a condition and by a lane of others, recorded, and changes nothing', async () => {
    expect(await accept('denies')).toMatchObject({ code: 1, stderr: expect.stringContaining('held') });
    expect(await accept('limits')).toMatchObject({ code: 1, stderr: expect.stringContaining('role.unknown') });
    // It refuses the shorter ledger as before.
    const refused = await at('run', '-', '--contract', join(folder, 'contract'));
    expect(refused.stderr).toContain('LEDGER_BELOW_HEAD');
    expect((await at('doctor')).stdout).toContain('LEDGER_BELOW_HEAD');
    expect((await at('cluster', 'status')).code).toBe(0);
  }, 120_000);

  test('asks for votes where effects would run again: at the acknowledgement', async () => {
    const accepted = await accept('asks', '--json');
    expect(accepted).toMatchObject({ code: 0 });
    const { isNew, evidence } = JSON.parse(accepted.stdout) as { isNew: boolean; evidence: string[] };
    expect(isNew).toBe(true);
    expect(evidence.some((one) => one.endsWith('of turnpike_heads.heads'))).toBe(place === 'table');
    const suspended = await at('doctor', '--contract', join(folder, 'contract'));
    expect(suspended.stdout).toContain('execution is suspended since restore');
    const contract = ['--contract', join(folder, 'asks'), '--actor', 'olga', '--yes'];
    const pending = await at('restore', 'acknowledge', ...contract);
    expect(pending).toMatchObject({ code: 1, stderr: expect.stringContaining('APPROVAL_PENDING') });
    const [, run = '', digest = ''] = /turnpike approve (\S+) ([0-9a-f]{64})/.exec(pending.stderr) ?? [];
    const voter = ['--actor', 'second person', '--role', 'ATTORNEY_ADMIN', '--contract', join(folder, 'asks')];
    expect(await at('approve', run, digest, ...voter)).toMatchObject({ code: 0, stderr: '' });
    expect(await at('restore', 'acknowledge', ...contract, '--approved', run)).toMatchObject({ code: 0 });
    const log = await execute(urlOf(newer), 'SET search_path TO turnpike; SELECT texts FROM blocks');
    const texts = log.map((row) => (row as { readonly texts: string }).texts).join('\n');
    for (const rule of ['held', 'approval.required']) expect(texts).toContain(`"rule_id":"${rule}"`);
    expect(texts).toContain('"name":"ledger.restore"');
    expect(await at('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await at('replay')).toMatchObject({ code: 0 });
  }, 120_000);
});
