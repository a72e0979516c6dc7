// One process of the cluster measurement: it opens a ledger, and works for callers of its own. The measuring process
// sends its commands over IPC.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import Type from 'typebox';
import { manifestPolicySource } from '../../build/compiled/src/home/policy/manifest-policy-source.js';
import { defineTool, openTurnpike, winstonLog } from '../../dist/src/index.js';
import { payload } from './payloads.mjs';

const { url, schema, folder, name, contract } = JSON.parse(process.argv[2]);
const CASES = 8;
/** How long the tool takes: it does not end before its worker is killed. */
const TOOL_MS = 60_000;

/** Statements that this process has sent to the database. */
let statements = 0;
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function countedQuery(...values) {
  statements += 1;
  return query.apply(this, values);
};

const common = {
  policies: manifestPolicySource(contract),
  log: winstonLog('silent'),
  tools: [
    defineTool({
      name: 'dictation.start',
      input: Type.Object({}, { additionalProperties: false }),
      output: Type.Object({}, { additionalProperties: false }),
      timeout: 2 * TOOL_MS,
      run: async () => {
        await pause(TOOL_MS);
        return {};
      },
    }),
  ],
};

async function open() {
  if (url === null) return openTurnpike({ ...common, home: join(folder, 'home'), control: false });
  const { openPostgresStore } = await import('../../dist/src/stores/postgres/index.js');
  const keys = join(folder, 'keys');
  const store = await openPostgresStore({ url, schema, caseKeysDir: join(keys, 'case-keys') });
  const folders = { keys, state: join(folder, `state-${name}`), sandbox: join(folder, 'sandbox') };
  return openTurnpike({ ...common, ...folders, store, restarts: 'automatic', control: false });
}

const turnpike = await open();
const sandbox = url === null ? turnpike.home.sandbox : join(folder, 'sandbox');

const COMMANDS = {
  /** Starts agents, each in the case after so many others. @returns their run ids */
  start: async ({ count, from = 0, stride = 1, cases = CASES }) => {
    const runs = [];
    for (let index = 0; index < count; index += 1) {
      const case_id = `case-${String((from + index * stride) % cases).padStart(4, '0')}`;
      mkdirSync(join(sandbox, case_id, 'a/b'), { recursive: true });
      writeFileSync(join(sandbox, case_id, 'a/b/note.txt'), 'n'.repeat(1024));
      runs.push((await turnpike.startAgent({ link: 'remote', case: case_id })).run_id);
    }
    return runs;
  },
  /** Each run has one caller that sends a step when it has the response. */
  run: async ({ runs, kind, ms, steps: stepsMax = Infinity }) => {
    const before = process.cpuUsage();
    const sent = statements;
    const from = performance.now();
    let steps = 0;
    let failures = 0;
    await Promise.all(
      runs.map(async (run_id) => {
        for (let own = 0; own < stepsMax && performance.now() - from < ms; own += 1) {
          const { outcome } = await turnpike.submit(run_id, payload(kind));
          if (outcome === 'SUCCESS') steps += 1;
          else failures += 1;
        }
      }),
    );
    const { user, system } = process.cpuUsage(before);
    return {
      ...{ steps, failures, ms: performance.now() - from },
      ...{ cpuMs: (user + system) / 1_000, statements: statements - sent },
    };
  },
  /** One step of each run; answers each when it has its response. */
  step: async ({ run }) => (await turnpike.submit(run, payload('think'))).outcome,
  /** Starts calls of a tool that do not end. @returns their run ids */
  tools: async ({ count }) => {
    const runs = [];
    for (let index = 0; index < count; index += 1) {
      const agent = await turnpike.startAgent({
        ...{ lane: 'TOOL_INTERVIEW_CAPTURE', role: 'INTERVIEW_AGENT', case: 'case-0001', link: 'remote' },
        scope: { client_session_id: 'session-1' },
      });
      runs.push(agent.run_id);
      const call = { action: 'CALL_TOOL', args: { tool: 'dictation.start', input: {} } };
      agent
        .submit(JSON.stringify({ ...JSON.parse(payload('think')), ...call }))
        .then((answer) => process.stderr.write(`a tool call ended: ${JSON.stringify(answer.error)}\n`))
        .catch(() => undefined);
    }
    return runs;
  },
};

process.on('message', ({ id, command, ...rest }) => {
  COMMANDS[command](rest).then(
    (result) => process.send({ id, result }),
    (error) => process.send({ id, error: String(error) }),
  );
});
process.send({ id: 0, result: 'ready' });
