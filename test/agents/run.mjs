// npm run campaign -- agents [--only CLIENT[,CLIENT]] [--scenario NAME[,NAME]] [--keep FOLDER] [--calls N]
//
// Runs every scenario with every client, each in its own isolation (`isolate.sh`: root, unshare and ip are needed), and
// writes `docs/coding-agents-tested.md` if every scenario of every client has a result. The exit code is 1 if a client
// did what it must not.
//
// --keep  where the files of each run stay, so that the page can be made of several; default: a folder that is removed
// --calls the number of calls of the scenario `many`, a multiple of 40; default: 1000

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SCENARIOS as DIALECT_SCENARIOS } from './box/scenarios.mjs';
import { SERVICE_SCENARIOS } from './box/service-scenarios.mjs';
import { cacheFolder, CLIENT_PACKAGES, installClient, versionOf } from './install-clients.mjs';
import { writePage } from './tested-page.mjs';

const SCENARIOS = { ...DIALECT_SCENARIOS, ...SERVICE_SCENARIOS };
const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const RUN_MS = 3_600_000;
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    scenario: { type: 'string' },
    keep: { type: 'string' },
    calls: { type: 'string', default: '1000' },
  },
});
const clients = values.only?.split(',') ?? Object.keys(CLIENT_PACKAGES);
const scenarios = values.scenario?.split(',') ?? Object.keys(SCENARIOS);

const out = values.keep === undefined ? mkdtempSync(join(tmpdir(), 'agents-')) : resolve(values.keep);

/** One scenario with one client. A run that ends without a result has failed. */
function run(client, scenario) {
  const folder = folderOf(client, scenario);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'home'), { recursive: true });
  const program = [
    process.execPath,
    join(ROOT, 'test/agents/box/run-scenario.mjs'),
    client,
    scenario,
    folder,
    values.calls,
  ];
  const { stderr } = spawnSync(join(ROOT, 'test/agents/isolate.sh'), [join(folder, 'home'), ...program], {
    env: {
      PATH: process.env.PATH,
      KEEP: folder,
      READ: `${ROOT} ${cacheFolder()}`,
      VARIABLES: `TURNPIKE_AGENTS_CACHE=${cacheFolder()}`,
    },
    timeout: RUN_MS,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  return resultOf(client, scenario) ?? { ok: false, did: `no result: ${stderr.trim().slice(-500)}` };
}

const folderOf = (client, scenario) => join(out, client, scenario.replace(/\W+/g, '-'));

/** What a run has written; null if it has not, or if it was one of another version. */
function resultOf(client, scenario) {
  const file = join(folderOf(client, scenario), 'result.json');
  const result = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
  return result?.version === versionOf(client) ? result : null;
}

const scenariosOf = (client) =>
  Object.keys(SCENARIOS).filter((scenario) => SCENARIOS[scenario].clients?.includes(client) ?? true);

for (const client of clients) {
  installClient(client);
  for (const scenario of scenarios.filter((name) => scenariosOf(client).includes(name))) {
    const { ok, did } = run(client, scenario);
    console.log(`${client}: ${scenario}: ${ok ? 'held' : 'FAILED'}: ${did}`);
    if (!ok) process.exitCode = 1;
  }
}
const results = Object.keys(CLIENT_PACKAGES).map((client) => ({
  client,
  version: versionOf(client),
  runs: scenariosOf(client).map((name) => ({ title: SCENARIOS[name].title, ...resultOf(client, name) })),
}));
if (results.every(({ runs }) => runs.every(({ ok }) => ok === true))) writePage(results);
if (values.keep === undefined) rmSync(out, { recursive: true, force: true });
