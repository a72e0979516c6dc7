// Traces WRITE_FILEs from `submit` to the response, and prints each file of ours that took part in every one of them,
// with the functions that ran, in the order of their first calls: `node tools/trace-step.mjs`; with `--json` as data.
// Other files run when it is time for them, such as the signature of a head, and are printed apart. Needs the compiled
// modules of a build: the files in dist are bundles.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMPILED = fileURLToPath(new URL('../build/compiled', import.meta.url));
/** How many proposals are traced. */
const STEPS = 10;

if (!existsSync(COMPILED)) {
  console.error('no compiled modules: run `npm run build` first');
  process.exit(1);
}

/** The functions that were called since the last proposal, in the order of their first calls. */
let calls = new Map();
globalThis.recordCall = (path, name) => {
  const called = `${path} ${name}`;
  if (!calls.has(called)) calls.set(called, { path, name });
};
register('./record-calls.mjs', import.meta.url, { data: { compiled: COMPILED } });
const { openTurnpike } = await import(join(COMPILED, 'src/index.js'));

const home = mkdtempSync(join(tmpdir(), 'trace-step-'));
const contract = fileURLToPath(new URL('../policies/contract/v1', import.meta.url));
const turnpike = await openTurnpike({ home, contract });
const steps = [];
try {
  const agent = await turnpike.startAgent({ case: 'case-0001' });
  for (let number = 0; number <= STEPS; number += 1) {
    const proposal = {
      schema_version: '1.0.0',
      id: `00000000-0000-4000-8000-0000000000${String(number).padStart(2, '0')}`,
      reasoning: 'A note.',
      action: 'WRITE_FILE',
      args: { path: `/sandbox/note-${number}.md`, content: 'Hello.\n' },
    };
    calls = new Map();
    const response = await agent.submit(JSON.stringify(proposal));
    if (response.outcome !== 'SUCCESS') throw new Error(`the proposal was not executed: ${JSON.stringify(response)}`);
    steps.push(calls);
  }
} finally {
  calls = new Map();
  await turnpike.close();
  rmSync(home, { recursive: true });
}

// The first proposal also fills caches.
const [, first, ...others] = steps;
const ran = [...first].filter(([called]) => others.every((step) => step.has(called))).map(([, call]) => call);
if (process.argv.includes('--json')) {
  console.log(JSON.stringify(ran));
  process.exit();
}
const files = [...new Set(ran.map(({ path }) => path))];
for (const file of files) {
  const names = ran.filter(({ path, name }) => path === file && name !== '').map(({ name }) => name);
  console.log(`${file}  ${names.join(' ')}`);
}
const inSome = new Set(others.flatMap((step) => [...step.values()].map(({ path }) => path)));
for (const file of files) inSome.delete(file);
console.log(`in some of ${STEPS} steps: ${[...inSome].sort().join(' ') || 'no other file'}`);
console.log(`${files.length} files in ${new Set(files.map((file) => dirname(file))).size} folders`);
