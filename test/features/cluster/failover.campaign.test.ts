// An asynchronous standby takes over after a SIGKILL of its primary: what was lost is recorded, every worker refuses
// the shorter ledger until then, and after the documented way no effect was executed twice. So in each place of heads.

import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { locateHome } from '../../../src/home/store-home.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { tempFolder, turnpike as command } from '../../interfaces/cli/fake-io.js';
import { execute } from '../../stores/postgres/postgres-harness.js';
import { writeContract } from '../../fixtures/bench.js';
import { programs, startPostgres, type Postgres } from '../../fixtures/postgres.js';
import { startStandby, type Standby } from '../../fixtures/postgres-standby.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

/** Where fresh workers see the heads of the others. */
const PLACES = [
  { place: 'files in one key folder', hasCopies: false, hasTable: false },
  { place: 'a table of another database, with copies of the key folder', hasCopies: true, hasTable: true },
  { place: 'both', hasCopies: false, hasTable: true },
] as const;

const installed = programs() !== null;

(installed ? describe.each(PLACES) : describe.skip.each(PLACES))(
  'a failover with $place',
  ({ hasCopies, hasTable }) => {
    let primary: Postgres | null = null;
    let other: Postgres | null = null;
    let folder: string;
    let standby: Standby;
    const offered = service();
    const { world } = offered;
    const home = (name: string): string => join(folder, name);
    beforeAll(async () => {
      primary = await startPostgres({ isDurable: true });
      if (hasTable) other = await startPostgres({ isDurable: true });
      folder = tempFolder('failover');
      writeContract(join(folder, 'contract'), { edit: serviceEdit });
      await init('one', primary?.url ?? '');
      standby = await startStandby(primary!);
    }, 120_000);
    afterAll(async () => {
      await primary?.stop();
      await standby.stop();
      await other?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** A copy is never written again, as a secret is not that is mounted on each machine. */
    const keysOf = (name: string): string => (hasCopies && name !== 'one' ? home(`keys-${name}`) : home('one/keys'));
    const init = (name: string, url: string) => {
      const shared = name === 'one' ? [] : ['--keys', keysOf(name), '--sandbox', join(home('one'), 'sandbox')];
      return command(folder, ['init', '--store', url, '--home', home(name), '--unsafe-shared', ...shared]);
    };
    const heads = () => (other === null ? {} : { heads: other.url });
    const open = async (name: string, url: string): Promise<Turnpike> => {
      const paths = locateHome(home(name));
      const database = sqlDatabase({ url: `sqlite:${join(folder, 'records.db')}`, create: true });
      const store = await openPostgresStore({ url, caseKeysDir: paths.caseKeys, ...heads() });
      try {
        return await openTurnpike({
          ...{ store, keys: paths.keys, state: paths.state, sandbox: paths.sandbox },
          policies: manifestPolicySource(join(folder, 'contract')),
          tools: offered.tools,
          targets: offered.targets.map((target) => Object.assign(target, { database })),
          log: winstonLog('silent'),
        });
      } catch (error) {
        await store.close();
        throw error;
      }
    };
    const charge = async (turnpike: Turnpike, amount: number): Promise<unknown> => {
      const agent = await turnpike.startAgent({ ...CASE_AGENT, case: 'case-0001' });
      const raw = JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount } }));
      const response: object = await agent.submit(raw);
      await agent.end();
      return 'outcome' in response ? response.outcome : response;
    };
    const chargedOf = (amount: number): number => world.effects.filter((effect) => effect.amount === amount).length;
    const accept = (name: string) =>
      command(folder, [
        ...['failover', 'accept', '--home', home(name), '--store', standby.url, '--contract', join(folder, 'contract')],
        ...['--actor', 'otto operator', '--yes', '--json'],
        ...(other === null ? [] : ['--heads', other.url]),
      ]);

    test('fresh workers refuse the shorter ledger, the loss is recorded once, and no effect is executed twice', async () => {
      const first = await open('one', primary?.url ?? '');
      for (const amount of [1, 2, 3]) expect(await charge(first, amount)).toBe('SUCCESS');
      for (const name of hasCopies ? ['two', 'fresh'] : []) cpSync(keysOf('one'), keysOf(name), { recursive: true });
      await init('two', primary?.url ?? '');
      await standby.catchUp();
      await standby.cutOff();
      for (const amount of [4, 5]) expect(await charge(first, amount)).toBe('SUCCESS');
      const { size } = await first.ledger.head();
      while (((await first.ledger.anchored())?.size ?? 0) < size) await sleep(20);
      const rows = 'SELECT max(size)::int AS size FROM turnpike_heads.heads';
      while (other !== null && ((await execute(other.url, rows))[0] as { readonly size: number }).size < size)
        await sleep(20);
      const { checks } = await first.readiness.report();
      expect(checks.filter(({ name }) => name === 'heads')).toEqual(hasTable ? [{ name: 'heads', reason: null }] : []);
      await primary?.crash();
      // More may have been integrated meanwhile.
      const before = (await first.ledger.anchored())!;
      await first.close().catch(() => undefined);
      await standby.promote();

      // A worker with its own newer head, one whose head is old, and one that has no local state yet.
      for (const name of ['one', 'two'])
        await expect(open(name, standby.url)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
      await init('fresh', standby.url);
      await expect(open('fresh', standby.url)).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
      expect(world.effects).toHaveLength(5);

      const accepted = await accept('one');
      expect(accepted).toMatchObject({ code: 0 });
      const report = JSON.parse(accepted.stdout) as {
        kept: { size: number };
        lost: { size: number };
        isNew: boolean;
        evidence: string[];
        tree_id: string;
      };
      expect(report.isNew).toBe(true);
      expect(report.lost.size).toBe(before.size);
      expect(report.kept.size).toBeLessThan(before.size);
      const lostRows = report.evidence.filter((one) => /^row \S+ of turnpike_heads\.heads$/.test(one));
      expect(lostRows).toHaveLength(hasTable ? 1 : 0);
      for (const path of report.evidence.slice(lostRows.length)) expect(existsSync(path)).toBe(true);
      expect(readFileSync(report.evidence.at(-1) ?? '', 'latin1')).toContain(`\n${before.size}\n`);
      expect(await accept('two')).toMatchObject({ code: 2, stderr: expect.stringContaining('nothing was lost') });

      // Suspended as after a restore, for every worker.
      for (const name of ['one', 'two', 'fresh']) {
        const turnpike = await open(name, standby.url);
        await expect(charge(turnpike, 4)).rejects.toMatchObject({ code: 'EXECUTION_SUSPENDED' });
        await turnpike.close();
      }
      // The operator finds out which requests were executed without a record: their callers must not repeat them.
      const lost = [4, 5].filter((amount) => chargedOf(amount) === 1);
      expect(lost).toEqual([4, 5]);
      const acknowledge = [
        'restore',
        'acknowledge',
        '--home',
        home('one'),
        '--store',
        standby.url,
        '--actor',
        'otto operator',
      ];
      expect(await command(folder, [...acknowledge, '--yes'])).toMatchObject({ code: 0 });
      const turnpike = await open('fresh', standby.url);
      for (const amount of [6, 7]) expect(await charge(turnpike, amount)).toBe('SUCCESS');
      expect([1, 2, 3, 4, 5, 6, 7].map(chargedOf)).toEqual([1, 1, 1, 1, 1, 1, 1]);
      const events: AuditEvent[] = [];
      for await (const { text } of turnpike.ledger.log()) {
        const { type, body } = JSON.parse(text) as { readonly type: string; readonly body: AuditEvent };
        if (type === 'audit_event' && /LEDGER_RESTORED|RESTORE_ACK/.test(body.outcome_reason ?? '')) events.push(body);
      }
      expect(events.map(({ outcome_reason, notes }) => [outcome_reason, notes?.slice(0, 28)])).toEqual([
        [expect.stringContaining('LEDGER_RESTORED'), 'the ledger after a failover '],
        [expect.stringContaining('RESTORE_ACKNOWLEDGED'), 'the ledger after a failover '],
      ]);
      expect(events[0]?.notes).toContain(`to entry ${before.size} (root ${before.root})`);
      expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
      expect(await turnpike.replay()).toMatchObject({ difference: null });
      await turnpike.close();
    }, 240_000);
  },
);
