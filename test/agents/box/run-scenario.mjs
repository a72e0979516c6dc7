// node run-scenario.mjs CLIENT SCENARIO FOLDER CALLS: runs one scenario with one client, inside the isolation, and
// writes FOLDER/result.json: `{ version, ok, did }`.

import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS } from '../../../build/compiled/src/features/hooks/dialects.js';
import { versionOf } from '../install-clients.mjs';
import { clientOf } from './clients.mjs';
import { startDialectGate } from './dialect-gate.mjs';
import { SCENARIOS } from './scenarios.mjs';
import { SERVICE_SCENARIOS } from './service-scenarios.mjs';
import { ServiceGate } from './service-gate.mjs';
import { startModel } from './scripted-model.mjs';

const [clientName, scenarioName, folder, calls] = process.argv.slice(2);
const isService = Object.hasOwn(SERVICE_SCENARIOS, scenarioName);
const { run, clientMs: CLIENT_MS = 240_000 } = { ...SCENARIOS, ...SERVICE_SCENARIOS }[scenarioName];
const HOOK = `${process.execPath} ${fileURLToPath(new URL('hook-command.mjs', import.meta.url))}`;
const ALLOW = { decision: 'allow', run_id: 'run_test.1' };

const client = clientOf(clientName);
const [home, project] = [join(folder, 'home'), join(folder, 'project')];
for (const path of [home, project]) mkdirSync(path, { recursive: true });
client.configure({ home, notes: client.notes });

/** Starts the client on a prompt and waits for its end. Its output goes to FOLDER/client.log. */
function runClient(prompt, { words = [], variables = {} } = {}) {
  const [program, ...first] = client.command;
  const trust = isService ? [] : client.untrusted;
  const child = spawn(program, [...first, ...client.start(home, prompt), ...trust, ...words], {
    cwd: project,
    env: { ...process.env, ...gate.environment, ...client.variables, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part));
  const timer = setTimeout(() => child.kill('SIGKILL'), CLIENT_MS);
  return new Promise((done) =>
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      appendFileSync(join(folder, 'client.log'), `${output}\n`);
      done({ code, signal, output });
    }),
  );
}

const model = await startModel(9321, [{ text: 'FINISHED' }]);
const gate = isService
  ? new ServiceGate({ folder, home, project, client })
  : await startDialectGate(9322, DIALECTS, () => ALLOW);
const scenario = {
  client,
  model,
  gate,
  folder,
  home,
  project,
  runClient,
  calls: Number(calls),
  exists: (name) => existsSync(join(project, name)),
  /** Whether a text has reached the model. */
  hasReachedModel: (text) => JSON.stringify(model.requests).includes(text),
};
let result;
try {
  if (isService) await gate.open();
  else client.addHooks({ home, hook: HOOK });
  result = await run(scenario);
} catch (error) {
  result = { ok: false, did: `failed: ${error.stack}` };
}
if (!isService) {
  const lines = gate.events.map((entry) => JSON.stringify(entry)).join('\n');
  writeFileSync(join(folder, 'events.jsonl'), `${lines}\n`);
}
writeFileSync(join(folder, 'model.json'), JSON.stringify(model.requests));
writeFileSync(join(folder, 'result.json'), JSON.stringify({ version: versionOf(clientName), ...result }));
await Promise.all([gate.close(), model.close()]).catch(() => undefined);
process.exit(0);
