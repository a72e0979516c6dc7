// node run-scenario.mjs CLIENT SCENARIO FOLDER CALLS: runs one scenario with one client, inside the isolation, and
// writes FOLDER/result.json: `{ version, ok, did }`.

import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS } from '../../../build/compiled/src/hooks/dialects.js';
import { versionOf } from '../install-clients.mjs';
import { clientOf } from './clients.mjs';
import { startDialectGate } from './dialect-gate.mjs';
import { SCENARIOS } from './scenarios.mjs';
import { startModel } from './scripted-model.mjs';

const [clientName, scenarioName, folder, calls] = process.argv.slice(2);
const CLIENT_MS = SCENARIOS[scenarioName].clientMs ?? 240_000;
const HOOK = `${process.execPath} ${fileURLToPath(new URL('hook-command.mjs', import.meta.url))}`;
const ALLOW = { decision: 'allow', run_id: 'run_test.1' };

const client = clientOf(clientName);
const [home, project] = [join(folder, 'home'), join(folder, 'project')];
for (const path of [home, project]) mkdirSync(path, { recursive: true });
client.configure({ home, hook: HOOK, notes: client.notes });

/** Starts the client on a prompt and waits for its end. Its output goes to FOLDER/client.log. */
function runClient(prompt, { words = [], variables = {} } = {}) {
  const [program, ...first] = client.command;
  const child = spawn(program, [...first, ...client.start(home, prompt), ...words], {
    cwd: project,
    env: { ...process.env, ...client.variables, ...variables },
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
const gate = await startDialectGate(9322, DIALECTS, () => ALLOW);
const scenario = {
  client,
  model,
  gate,
  project,
  runClient,
  calls: Number(calls),
  exists: (name) => existsSync(join(project, name)),
  /** Whether a text has reached the model. */
  hasReachedModel: (text) => JSON.stringify(model.requests).includes(text),
};
let result;
try {
  result = await SCENARIOS[scenarioName].run(scenario);
} catch (error) {
  result = { ok: false, did: `failed: ${error.stack}` };
}
const lines = gate.events.map((entry) => JSON.stringify(entry)).join('\n');
writeFileSync(join(folder, 'events.jsonl'), `${lines}\n`);
writeFileSync(join(folder, 'model.json'), JSON.stringify(model.requests));
writeFileSync(join(folder, 'result.json'), JSON.stringify({ version: versionOf(clientName), ...result }));
await Promise.all([gate.close(), model.close()]);
process.exit(0);
