// A program with nothing but a Turnpike: no server and no terminal that would keep its process alive.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeContract } from '../fixtures/bench.js';
import { serviceEdit } from '../fixtures/service.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

const PROGRAM = `
  const [, home, contract, dist] = process.argv;
  const { defineTool, ActionNotExecutedError, openTurnpike, winstonLog } = await import(dist);
  const { default: Type } = await import('typebox');
  const none = Type.Object({}, { additionalProperties: false });
  let calls = 0;
  const run = async () => {
    calls += 1;
    if (calls === 1) throw new ActionNotExecutedError('not now');
    return {};
  };
  const tool = defineTool({ name: 'slow.tool', input: none, output: none, idempotent: true, run });
  const turnpike = await openTurnpike({ home, contract, tools: [tool], control: false, log: winstonLog('silent') });
  const agent = await turnpike.startAgent({ lane: 'CASE_WORK', role: 'CASE_AGENT', case: 'case-local' });
  const { outcome } = await agent.submit(JSON.stringify({
    schema_version: '1.0.0', id: '00000000-0000-4000-8000-000000000001', reasoning: 'It must be done.',
    action: 'CALL_TOOL', args: { tool: 'slow.tool', input: {} },
  }));
  await agent.end();
  await turnpike.close();
  process.stdout.write(outcome + ' after ' + calls);
`;

let folder: string;
beforeEach(() => {
  folder = diskFolder('alone');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a process that waits for a response does not exit before it, even while the action waits for a retry', () => {
  const retried = (text: string): string => `${text}\nretries: { max: 1, backoff_ms: 400 }\n`;
  const edit: typeof serviceEdit = (name, text) =>
    name === 'actions' ? retried(serviceEdit(name, text)) : serviceEdit(name, text);
  writeContract(join(folder, 'contract'), { edit });
  const dist = pathToFileURL(join(ROOT, 'dist/src/index.js')).href;
  const argv = ['--input-type=module', '-e', PROGRAM, join(folder, 'home'), join(folder, 'contract'), dist];
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 30_000,
  });
  expect([status, stdout, stderr]).toEqual([0, 'SUCCESS after 2', '']);
});
