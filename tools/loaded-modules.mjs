// Opens a fresh home with nothing but the library, executes one WRITE_FILE, closes it, and prints the modules of
// features that Node has loaded for that: `node tools/loaded-modules.mjs`. Runs the sources, so it needs no build.

import { mkdtempSync, rmSync } from 'node:fs';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const { port1: loads, port2: port } = new MessageChannel();
register('./source-hooks.mjs', import.meta.url, { data: { port }, transferList: [port] });
const { openTurnpike } = await import('../src/index.ts');

const home = mkdtempSync(join(tmpdir(), 'loaded-modules-'));
const turnpike = await openTurnpike({ home, contract: join(ROOT, 'policies/contract/v1') });
const agent = await turnpike.startAgent({ case: 'case-0001' });
const response = await agent.submit(
  JSON.stringify({
    schema_version: '1.0.0',
    id: '00000000-0000-4000-8000-000000000001',
    reasoning: 'A note.',
    action: 'WRITE_FILE',
    args: { path: '/sandbox/note.md', content: 'Hello.\n' },
  }),
);
await turnpike.close();
rmSync(home, { recursive: true });
if (response.outcome !== 'SUCCESS') throw new Error(`the proposal was not executed: ${JSON.stringify(response)}`);

const modules = [];
for (let load = receiveMessageOnPort(loads); load !== undefined; load = receiveMessageOnPort(loads))
  modules.push(relative(ROOT, fileURLToPath(load.message)));
loads.close();
const ofFeatures = modules.filter((path) => path.startsWith('src/features/')).sort();
for (const path of ofFeatures) console.log(path);
console.log(`${ofFeatures.length} of ${modules.length} loaded modules are below src/features`);
