// Traces WRITE_FILEs from `submit` to the response, and prints each file of ours that took part in every one of them,
// with the functions that ran: `npm run trace-step`; with `--json` as data. The others run when it is time for them,
// such as the measurement of free disk space, and are printed apart. Needs the compiled modules of a build: the files
// in dist are bundles.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMPILED = fileURLToPath(new URL('../build/compiled', import.meta.url));
/** How many proposals are traced. */
const STEPS = 10;

if (!existsSync(COMPILED)) {
  console.error('no compiled modules: run `npm run build` first');
  process.exit(1);
}
const { openTurnpike } = await import(join(COMPILED, 'src/index.js'));

const home = mkdtempSync(join(tmpdir(), 'trace-step-'));
const contract = fileURLToPath(new URL('../policies/contract/v1', import.meta.url));
const turnpike = await openTurnpike({ home, contract });
const agent = await turnpike.startAgent({ case: 'case-0001' });
const submit = (number) =>
  agent.submit(
    JSON.stringify({
      schema_version: '1.0.0',
      id: `00000000-0000-4000-8000-0000000000${String(number).padStart(2, '0')}`,
      reasoning: 'A note.',
      action: 'WRITE_FILE',
      args: { path: `/sandbox/note-${number}.md`, content: 'Hello.\n' },
    }),
  );
// The first proposal also fills caches; the later ones are what a step costs.
await submit(0);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const steps = [];
for (let number = 1; number <= STEPS; number += 1) {
  await session.post('Profiler.takePreciseCoverage');
  const response = await submit(number);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  if (response.outcome !== 'SUCCESS') throw new Error(`the proposal was not executed: ${JSON.stringify(response)}`);
  steps.push(functionsByFile(result));
}
session.disconnect();
await turnpike.close();
rmSync(home, { recursive: true });

/** The functions of ours that ran, by file. */
function functionsByFile(result) {
  const files = result.map(({ url, functions }) => [
    url.startsWith(`file://${COMPILED}/`) ? relative(COMPILED, fileURLToPath(url)).replace(/\.js$/, '.ts') : '',
    functions.filter(({ ranges: [range] }) => range.count > 0).map(({ functionName }) => functionName),
  ]);
  return new Map(files.filter(([path, names]) => path !== '' && names.length > 0));
}

const [first, ...others] = steps;
const ran = [...first]
  .filter(([path]) => others.every((step) => step.has(path)))
  .map(([path, names]) => ({
    path,
    names: names.filter((name) => others.every((step) => step.get(path).includes(name))),
  }))
  .sort((a, b) => (a.path < b.path ? -1 : 1));
if (process.argv.includes('--json')) {
  console.log(JSON.stringify(ran));
  process.exit();
}
for (const { path, names } of ran)
  console.log(`${path}  ${[...new Set(names.filter((name) => name !== ''))].join(' ')}`);
const inSome = new Set(
  steps.flatMap((step) => [...step.keys()]).filter((path) => !ran.some((one) => one.path === path)),
);
console.log(`in some of ${STEPS} steps: ${[...inSome].sort().join(' ') || 'no other file'}`);
console.log(
  `${ran.length} files in ${new Set(ran.map(({ path }) => path.split('/').slice(0, -1).join('/'))).size} folders`,
);
