// A killed service: everything that it has acknowledged is in the ledger.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { TokenFile } from '../../../src/stores/keys/token-file.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { createHome, homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { built } from '../../docs/built.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../sources.js';
import { writeContract } from '../../fixtures/bench.js';
import { proposal } from './http-harness.js';

const AGENTS = 8;
const MS_MAX = 120_000;
let folder: string;
let child: ChildProcess;

beforeAll(async () => {
  await built();
  folder = diskFolder('killed');
  writeContract(join(folder, 'contract'), {});
}, MS_MAX);
afterAll(() => {
  child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function serve(): Promise<string> {
  const main = join(ROOT, 'dist/src/interfaces/cli/main.js');
  child = spawn(process.execPath, [main, 'serve', '--port', '0'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  for await (const chunk of child.stderr as AsyncIterable<Buffer>) {
    said += chunk.toString();
    const [, url] = /(http:\/\/127\.0\.0\.1:\d+)\/#token=/.exec(said) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error(`the service has not begun: ${said}`);
}

test(
  'every step that was acknowledged before SIGKILL is in the ledger with the same response',
  async () => {
    const home = homePaths(join(folder, '.turnpike'));
    await createHome(home.home);
    const grant = { actor: 'agent-one', role: 'SANDBOX_AGENT', rights: ['act'] as const };
    const { token } = new TokenFile(home.tokens, systemClock()).mint(grant, nanoidIds());
    const url = await serve();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const post = (path: string, body: string): Promise<Response> =>
      fetch(`${url}/api/v1/agents${path}`, { method: 'POST', headers, body });
    const acknowledged: string[] = [];
    const work = async (): Promise<void> => {
      const { run_id } = (await (await post('', '{"case":"case-local"}')).json()) as { run_id: string };
      for (;;) {
        const response = await post(
          `/${run_id}/steps`,
          proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }),
        );
        const text = await response.text();
        if (response.status === 200) acknowledged.push(sha256(text));
      }
    };
    const working = Promise.allSettled(Array.from({ length: AGENTS }, work));
    while (acknowledged.length < 100) await new Promise((resolve) => setTimeout(resolve, 5));
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await working;
    const { store, externalHeadStore } = openHome(home, { readOnly: true });
    const recorded = new Set<string>();
    for await (const { type, text } of new LedgerReader(store, externalHeadStore).log()) {
      if (type !== 'step_trace') continue;
      recorded.add((JSON.parse(text) as { body: { response_sha256: string } }).body.response_sha256);
    }
    await store.close();
    expect(acknowledged.length).toBeGreaterThanOrEqual(100);
    expect(acknowledged.filter((hash) => !recorded.has(hash))).toEqual([]);
  },
  MS_MAX,
);
