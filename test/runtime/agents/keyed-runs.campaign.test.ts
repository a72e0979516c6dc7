// A process that is killed (SIGKILL) while its agent's request waits for a vote. The next process continues the same
// run with the vote, which may come while no process has the run.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { connectControl } from '../../../src/host/control/control-client.js';
import { homePaths } from '../../../src/home/home.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { writeContract } from '../../fixtures/bench.js';
import { bundled } from '../../fixtures/bundled.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

const MS_MAX = 120_000;
const APPROVALS =
  'approvals:\n  - { for: WRITE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
const PROGRAM = 'build/test/runtime/agents/keyed-victim';

let program: string;
let programs: string;
beforeAll(async () => {
  programs = diskFolder();
  await bundled(programs, { [PROGRAM]: 'test/runtime/agents/keyed-victim.ts' });
  program = join(programs, `${PROGRAM}.js`);
}, MS_MAX);
afterAll(() => rmSync(programs, { recursive: true, force: true }));

let folder: string;
let children: ChildProcess[] = [];
beforeEach(() => {
  folder = diskFolder();
  writeContract(join(folder, 'contract'), {
    edit: (name, text) => (name === 'actions' ? `${text}\n${APPROVALS}` : text),
  });
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  rmSync(folder, { recursive: true, force: true });
});

const home = (): string => join(folder, 'home');
const calls = (): number => readFileSync(join(folder, 'calls'), 'utf8').split('\n').length - 1;

interface Victim {
  readonly next: () => Promise<Readonly<Record<string, unknown>>>;
  readonly kill: () => Promise<void>;
  readonly ended: Promise<unknown>;
}

function started(): Victim {
  const argv = [program, home(), join(folder, 'contract'), join(folder, 'calls')];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, 'exit');
  return {
    next: async () => JSON.parse((await lines.next()).value as string) as Readonly<Record<string, unknown>>,
    kill: async () => {
      child.kill('SIGKILL');
      expect(await ended).toEqual([null, 'SIGKILL']);
    },
    ended,
  };
}

/** The home, opened by a process that has no agent. */
async function withHome<T>(work: (turnpike: Turnpike) => Promise<T>): Promise<T> {
  const policies = manifestPolicySource(join(folder, 'contract'));
  const turnpike = await openTurnpike({ home: home(), policies, log: winstonLog('silent') });
  try {
    return await work(turnpike);
  } finally {
    await turnpike.close();
  }
}

async function checkLedger(): Promise<void> {
  await withHome(async (turnpike) => {
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
  });
}

describe.each(['approve', 'reject'] as const)('D3 D7: killed between request and vote (%s)', (decision) => {
  const expectReport = async (victim: Victim): Promise<void> => {
    const { reason, answer } = await victim.next();
    expect(reason).toBe('finished');
    expect(JSON.parse(answer as string)).toMatchObject({ outcome: decision === 'approve' ? 'SUCCESS' : 'DENIED' });
    expect(await victim.ended).toEqual([0, null]);
    expect(existsSync(join(home(), 'sandbox/case-0001/a.md'))).toBe(decision === 'approve');
    // One call of the agent before the kill, and one after the vote.
    expect(calls()).toBe(2);
    await checkLedger();
  };

  test(
    'the vote comes while no process has the run',
    async () => {
      const first = started();
      const { run_id, resumed } = await first.next();
      expect(resumed).toBe(false);
      const { request } = (await first.next()) as { request: { digest: string } };
      await first.kill();
      await withHome(async (turnpike) => {
        expect(await turnpike.requests(run_id as string)).toEqual([request]);
        const ballot = { run: run_id as string, digests: [request.digest], decision } as const;
        expect(await turnpike.approve({ ...ballot, actor: 'anna', role: 'ATTORNEY_ADMIN' })).toMatchObject([
          { counted: true },
        ]);
      });
      const second = started();
      const status = decision === 'approve' ? 'granted' : 'rejected';
      expect(await second.next()).toMatchObject({
        run_id,
        resumed: true,
        requests: [{ ...request, status, expires_at: expect.any(String) }],
      });
      await expectReport(second);
    },
    MS_MAX,
  );

  test(
    'the vote comes after the next process has the run',
    async () => {
      const first = started();
      const { run_id } = await first.next();
      const { request } = (await first.next()) as { request: { digest: string } };
      await first.kill();
      const second = started();
      expect(await second.next()).toEqual({ run_id, resumed: true, requests: [request] });
      expect(await second.next()).toEqual({ request });
      // Another kill changes nothing: the run waits on.
      await second.kill();
      const third = started();
      expect(await third.next()).toMatchObject({ run_id, resumed: true });
      expect(await third.next()).toEqual({ request });
      expect(calls()).toBe(1);
      const client = await connectControl(homePaths(home()).control, null);
      const ballot = { run: run_id as string, digests: [request.digest], decision } as const;
      expect(await client!.approve({ ...ballot, actor: 'anna', role: 'ATTORNEY_ADMIN' })).toMatchObject([
        { counted: true },
      ]);
      await client!.close();
      await expectReport(third);
    },
    MS_MAX,
  );
});
