// A disk that is really full, and the served process: health follows the ledger, and the ledger is written again in the
// same process when there is space, or the process ends, as an option requests.

import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { mountNamespace } from '../../../crash/mount-namespace.js';
import { diskFolder } from '../../../fixtures/temp-folder.js';
import { buildMain, ServedProcess, WAIT_MS } from './served-process.js';

const MS_MAX = 4 * WAIT_MS;
const SMALL_DISK = 'mount -t tmpfs -o size=16m tmpfs "$DISK"';
const DISK_LOW = 'disk: less space is free than the reserve: no run starts';
const FAILED = 'ledger-write: a write to the ledger failed: restarts follow until one succeeds';

const namespace = mountNamespace();
const onFullDisk = namespace === null ? test.skip : test;
const folder = diskFolder('failures');
let main: string;
let served: ServedProcess | null = null;

beforeAll(async () => {
  main = await buildMain(join(folder, 'built'));
}, MS_MAX);
afterEach(() => served?.kill());

function start(args: readonly string[] = []): ServedProcess {
  served = ServedProcess.start({
    main,
    folder: mkdtempSync(join(folder, 'case-')),
    namespace,
    mount: SMALL_DISK,
    args,
  });
  return served;
}

onFullDisk(
  'health says that the disk is below its reserve, and is well again when there is space',
  async () => {
    const process = start();
    await process.begin();
    expect(await process.step()).toBe('200 SUCCESS');
    expect((await process.health()).status).toBe(200);
    process.fillDisk();
    expect(await process.health()).toEqual({ status: 503, reasons: [DISK_LOW] });
    process.freeDisk();
    await process.until('health is 200', async () => (await process.health()).status === 200);
    expect(await process.step()).toBe('200 SUCCESS');
    expect(await process.stop()).toBe(0);
  },
  MS_MAX,
);

onFullDisk(
  'D2: after an AUDIT_FAILURE health is 503 until the ledger is written again, in the same process and run',
  async () => {
    const process = start();
    await process.begin();
    expect(await process.step()).toBe('200 SUCCESS');
    process.fillDisk();
    expect(await process.step()).toBe('200 AUDIT_FAILURE');
    expect(await process.health()).toEqual({ status: 503, reasons: [FAILED, DISK_LOW] });
    expect(await process.step()).toMatch(/^503 /);
    expect(await process.admin('/livez')).toBe('ok');
    expect(await process.admin('/metrics')).toMatch(/^turnpike_ledger_failed 1$/m);
    process.freeDisk();
    // At every moment: health is 200 only if a step is recorded.
    await process.until('health is 200', async () => (await process.health()).status === 200);
    expect(await process.step()).toBe('200 SUCCESS');
    expect(await process.admin('/metrics')).toMatch(/^turnpike_ledger_failed 0$/m);
    expect(process.command('ledger', 'verify')).toMatch(/^ok: /);
    expect(process.command('replay')).toMatch(/^ok: /);
    expect(await process.stop()).toBe(0);
  },
  MS_MAX,
);

onFullDisk(
  'with --on-ledger-failure exit the process ends with exit code 3',
  async () => {
    const process = start(['--on-ledger-failure', 'exit']);
    await process.begin();
    process.fillDisk();
    expect(await process.step()).toBe('200 AUDIT_FAILURE');
    expect(await process.ended).toBe(3);
    expect(process.stderr).toContain('the process ends, because the ledger cannot be written');
  },
  MS_MAX,
);

onFullDisk(
  'turnpike mcp writes again in the same process, and its agent goes on',
  async () => {
    const disk = join(mkdtempSync(join(folder, 'mcp-')), 'disk');
    const turnpike = `"${process.execPath}" "${main}"`;
    const mount = SMALL_DISK.replace('$DISK', disk);
    const script = `mkdir "${disk}" && ${mount} && cd "${disk}" && ${turnpike} init >&2 && exec ${turnpike} mcp`;
    const args = [...(namespace ?? []), 'sh', '-c', script];
    const transport = new StdioClientTransport({ command: 'unshare', args, stderr: 'ignore' });
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
    const think = async (): Promise<boolean> =>
      (await client.callTool({ name: 'think', arguments: {} })).isError !== true;
    expect(await think()).toBe(true);
    const files = filesOf(transport.pid ?? 0, disk);
    files.fill();
    expect(await think()).toBe(false);
    expect(await think()).toBe(false);
    files.free();
    const end = Date.now() + WAIT_MS;
    while (!(await think())) {
      if (Date.now() > end) throw new Error('the agent does not go on');
      await new Promise((done) => setTimeout(done, 200));
    }
    await client.close();
  },
  MS_MAX,
);

/** Fills and frees the disk of a process in its own mount namespace. */
function filesOf(pid: number, disk: string): { fill(): void; free(): void } {
  const at = (name: string): string => `/proc/${pid}/root${disk}/${name}`;
  const sh = (command: string): void => void spawnSync('sh', ['-c', command]);
  return {
    fill: () => sh(`rm -f "${at('.turnpike/ledger.reserve')}"; dd if=/dev/zero of="${at('filler')}" bs=512`),
    free: () => sh(`rm "${at('filler')}"`),
  };
}
