// The cost of the next step of a long session: a spec of many tasks, worked through until the ledger is long.
// `npm run bench -- session [--tasks 10000]`

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const { values } = parseArgs({ options: { tasks: { type: 'string', default: '10000' } } });
const tasks = Number(values.tasks);
const TASKS_A_PHASE = 100;
const by = { actor: 'bench', role: 'maintainer' };
const folder = mkdtempSync(join(tmpdir(), 'turnpike-session-'));
const contract = patientContract(join(folder, 'contract'));

const task = (id) => ({ id, title: `Task ${id}`, instruction: `Do what task ${id} says. `.repeat(10).trim() });
const phase = (number) => ({
  id: `phase-${number}`,
  title: `Phase ${number}`,
  tasks: Array.from({ length: TASKS_A_PHASE }, (_, index) => task(`task-${number}-${index}`)),
});
const spec = {
  spec_version: 1,
  id: 'long',
  title: 'A long spec',
  phases: Array.from({ length: Math.ceil(tasks / TASKS_A_PHASE) }, (_, number) => phase(number)),
};
const file = join(folder, 'spec.json');
writeFileSync(file, JSON.stringify(spec));

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
const at = (numbers, share) => sorted(numbers)[Math.floor(numbers.length * share)]?.toFixed(1);

/** A session pauses for an agent that repeats itself: this one clears its context again and again. */
const fill = (times) => 1 + (times.length % 50);

function report({ step_id, type, step_proof, task_id }) {
  return { step_id, step_type: type, outcome: 'success', step_proof, task_id };
}

try {
  const turnpike = await openTurnpike({
    home: join(folder, 'home'),
    contract,
    log: winstonLog('error'),
    control: false,
  });
  const { sessions } = turnpike;
  const limits = { max_tasks_per_session: 100_000 };
  const started = await sessions.start({ spec: file, case: 'case-local', by, limits, stopOnPhaseCompletion: false });
  const { session_id } = started.data;
  const times = [];
  let answer = await sessions.next(session_id, { context_usage_pct: 1 }, by);
  while (answer.data.next_step?.type === 'implement_task') {
    const step = answer.data.next_step;
    await turnpike.submit(step.run_id, payload('think'));
    const begin = performance.now();
    answer = await sessions.next(session_id, { last_step_result: report(step), context_usage_pct: fill(times) }, by);
    times.push(performance.now() - begin);
  }
  const last = times.slice(-1_000);
  const { entries } = await turnpike.ledger.verify();
  console.log(
    `${tasks} tasks, ${entries} entries (${answer.data.status}${answer.data.pause_reason ? `, ${answer.data.pause_reason}` : ''}): session next, median of the last ${last.length} ` +
      `${at(last, 0.5)} ms, 99 of 100 under ${at(last, 0.99)} ms; of the first 1,000 ${at(times.slice(0, 1_000), 0.5)} ms`,
  );
  await turnpike.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
