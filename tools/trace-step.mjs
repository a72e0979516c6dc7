// Traces one WRITE_FILE from `submit` to its response, and prints each file of ours whose functions ran, with their
// names: `npm run trace-step`; with `--json` as data. Needs the compiled modules of a build: the files in dist are
// bundles.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMPILED = fileURLToPath(new URL('../build/compiled', import.meta.url));
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
      id: `00000000-0000-4000-8000-00000000000${number}`,
      reasoning: 'A note.',
      action: 'WRITE_FILE',
      args: { path: `/sandbox/note-${number}.md`, content: 'Hello.\n' },
    }),
  );
// The first proposal also fills caches; the second is what a step costs.
await submit(1);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
await session.post('Profiler.takePreciseCoverage');
const response = await submit(2);
const { result } = await session.post('Profiler.takePreciseCoverage');
session.disconnect();
await turnpike.close();
rmSync(home, { recursive: true });
if (response.outcome !== 'SUCCESS') throw new Error(`the proposal was not executed: ${JSON.stringify(response)}`);

const ran = result
  .filter(({ url }) => url.startsWith(`file://${COMPILED}/`))
  .map(({ url, functions }) => ({
    path: relative(COMPILED, fileURLToPath(url)).replace(/\.js$/, '.ts'),
    names: functions.filter(({ ranges: [range] }) => range.count > 0).map(({ functionName }) => functionName),
  }))
  .filter(({ names }) => names.length > 0)
  .sort((a, b) => (a.path < b.path ? -1 : 1));
if (process.argv.includes('--json')) {
  console.log(JSON.stringify(ran));
  process.exit();
}
for (const { path, names } of ran)
  console.log(`${path}  ${[...new Set(names.filter((name) => name !== ''))].join(' ')}`);
console.log(
  `${ran.length} files in ${new Set(ran.map(({ path }) => path.split('/').slice(0, -1).join('/'))).size} folders`,
);
