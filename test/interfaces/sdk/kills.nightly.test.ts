// A service with tools of an SDK that is killed (SIGKILL) again and again: no call executes twice, and every
// conversation that was finished has the outputs of its calls.

import { afterEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { writeContract } from '../../fixtures/bench.js';
import { bundled } from '../../fixtures/bundled.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { aiSdkDriver } from './ai-sdk-driver.js';
import { sdkPolicy, ToolWorld } from './sdk-scenarios.js';

/** `KILLS=50 npm run test:campaigns -- interfaces/sdk/kills` kills more often. */
const KILLS = Number(process.env['KILLS'] ?? 15);
/** A process is killed after so many effects, and a little later. */
const EFFECTS_MAX = 9;
const LATER_MS_MAX = 10;
const PROGRAM = 'build/test/interfaces/sdk/sdk-victim';

const folders: string[] = [];
const newFolder = (): string => {
  const folder = diskFolder();
  folders.push(folder);
  return folder;
};
afterEach(() => folders.splice(0).forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A linear congruential generator: the same seed kills at the same times. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
}

const linesOf = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);

/** A home with the tools, and the program that has them. */
async function place(sdk: string, task: string) {
  const [programs, folder] = [newFolder(), newFolder()];
  await bundled(programs, { [PROGRAM]: 'test/interfaces/sdk/sdk-victim.ts' });
  const [home, contract] = [join(folder, 'home'), join(folder, 'contract')];
  writeContract(contract, { edit: sdkPolicy });
  const argv = [join(programs, `${PROGRAM}.js`), home, contract, folder, sdk, task];
  const start = () => {
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const ended = once(child, 'exit');
    const next = async (): Promise<unknown> => (await lines.next()).value;
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL');
      expect(await ended).toEqual([null, 'SIGKILL']);
    };
    return { next, kill, ended };
  };
  const open = async () => {
    const { definitions } = await aiSdkDriver(new ToolWorld());
    const policies = manifestPolicySource(contract);
    return openTurnpike({ home, policies, tools: definitions, log: winstonLog('silent') });
  };
  return { folder, start, open };
}

describe.each(['ai-sdk', 'langchain'])('0066: %s', (sdk) => {
  test(`killed ${KILLS} times: no call executes twice`, async () => {
    const { folder, start, open } = await place(sdk, 'notes');
    const random = randomFrom(sdk.length);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const victim = start();
      for (let left = 1 + Math.floor(random() * EFFECTS_MAX); left > 0; left -= 1) await victim.next();
      await delay(random() * LATER_MS_MAX);
      await victim.kill();
    }
    const effects = linesOf(join(folder, 'effects'));
    expect(effects.length).toBeGreaterThanOrEqual(KILLS);
    expect(new Set(effects).size).toBe(effects.length);
    for (const [n, line] of linesOf(join(folder, 'progress')).entries()) {
      for (const [id, result] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
        const text = `${n}.${id.slice(1)}`;
        // A call that was executing at the kill has an unknown outcome, and stays so.
        if (typeof result === 'string') expect(result).toMatch(/^error: /);
        else expect([result, effects.includes(text)]).toEqual([{ noted: text }, true]);
      }
    }
    const turnpike = await open();
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
    await turnpike.close();
    process.stdout.write(`${sdk}: ${KILLS} kills, ${effects.length} effects, none twice\n`);
  }, 600_000);

  test('killed between a request and its vote: the next process executes the call once', async () => {
    const { folder, start, open } = await place(sdk, 'payment');
    const first = start();
    expect(await first.next()).toBe('["c1"]');
    await first.kill();
    const turnpike = await open();
    for await (const { run_id: run, digest } of turnpike.ledger.approvals(new Date().toISOString()))
      await turnpike.approve({ run, digests: [digest], decision: 'approve', actor: 'erika', role: 'ATTORNEY_ADMIN' });
    await turnpike.close();
    const second = start();
    expect(await second.next()).toBe('{"c1":{"paid":5}}');
    expect(await second.ended).toEqual([0, null]);
    expect(linesOf(join(folder, 'effects'))).toEqual(['pay 5']);
  }, 120_000);
});
