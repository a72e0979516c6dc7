// `turnpike serve --demo`: creates a home directory of its own and fills it with the recorded working session, the same
// session mixed with attacks, a session of a spec, and an export that waits for approval. Agents then continue, one
// step at a time.

import { cpSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { winstonLog } from '../../system/winston-log.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { SessionAnswer } from '../../features/sessions/contract/session-answer.js';
import type { AgentRun } from '../../runtime/agents/agent-run.js';
import { packageFile } from '../../system/package-files.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../host/turnpike.js';

const STEP_MS = 900;
const PAUSE_MS = 4_000;
/** The person who runs the demo session. Another actor requests the export: a requester may not approve it. */
const MAINTAINER = { actor: 'maintainer', role: 'maintainer' } as const;
const GOVERNANCE = { actor: 'governance', role: 'ATTORNEY_ADMIN' } as const;

/** Opens Turnpike on a home directory below `folder`, with the shipped policy, under which exports need approval. */
export const openDemo = (
  folder: string,
  {
    log = winstonLog('warn'),
    ...options
  }: Partial<Pick<TurnpikeOptions, 'log' | 'restarts' | 'onLedgerFailed' | 'telemetry'>> = {},
): Promise<Turnpike> => openTurnpike({ home: join(folder, 'home'), log, ...options });

/** Creates the initial data of the demonstration; less of it if `stop` is aborted. */
export async function fillDemo(turnpike: Turnpike, stop: AbortSignal = new AbortController().signal): Promise<void> {
  const { work, attacks } = await readDemoPayloads();
  await submitPayloads(turnpike, 'case-session', work, 0, stop);
  await submitPayloads(turnpike, 'case-mixture', mixPayloads(work, attacks), 0, stop);
  if (stop.aborted) return;
  await startDemoSession(turnpike);
  const request = {
    case: 'case-session',
    reason: 'The client has asked for the file.',
    destination: 'case-session.zip',
    format: 'zip',
  } as const;
  await turnpike.export({ ...request, ...GOVERNANCE });
}

/** Runs demonstration agents, one step at a time, until `stop` is aborted. */
export async function runDemoAgents(turnpike: Turnpike, stop: AbortSignal): Promise<void> {
  const { work, attacks } = await readDemoPayloads();
  for (let round = 1; !stop.aborted; round += 1) {
    const steps = round % 2 === 0 ? work : mixPayloads(work, attacks);
    await submitPayloads(turnpike, `case-live-${round}`, steps, STEP_MS, stop);
    await pause(PAUSE_MS, stop);
  }
}

async function readDemoPayloads(): Promise<{ readonly work: readonly Buffer[]; readonly attacks: readonly Buffer[] }> {
  const folder = packageFile('docs/examples/material');
  return {
    work: linesOf(await readFile(join(folder, 'session.jsonl'))),
    attacks: linesOf(await readFile(join(folder, 'hostile.jsonl'))),
  };
}

/** Splits into lines of raw bytes, because some payloads are deliberately not valid text. */
function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(0x0a, from);
    lines.push(bytes.subarray(from, end === -1 ? bytes.length : end));
    from = end === -1 ? bytes.length : end + 1;
  }
  return lines;
}

/** Every second payload is an attack, until the number of denials ends the run. */
const mixPayloads = (work: readonly Buffer[], attacks: readonly Buffer[]): readonly Buffer[] =>
  work.flatMap((payload, place) => [payload, ...attacks.slice(place, place + 1)]);

/** Runs one agent from its first proposal to its end, whatever its outcome. */
async function submitPayloads(
  turnpike: Turnpike,
  case_id: string,
  payloads: readonly Buffer[],
  step_ms: number,
  stop: AbortSignal = new AbortController().signal,
): Promise<void> {
  const sandbox = turnpike.home?.sandbox;
  if (sandbox !== undefined)
    cpSync(join(packageFile('docs/examples/material'), 'case-files'), join(sandbox, case_id), { recursive: true });
  const run = await turnpike.startAgent({ case: case_id });
  for (const payload of payloads) {
    if (stop.aborted || (await trySubmit(run, payload)) === null) return;
    await pause(step_ms, stop);
  }
  await run.end().catch(() => undefined);
}

/** @returns null if the run accepts no more proposals */
const trySubmit = (run: AgentRun, payload: Buffer): Promise<StepResponse | null> =>
  run.submit(payload).catch(() => null);

const NOTES: Readonly<Record<string, string>> = {
  contacts: '- Ada: the keys\n- Ben: first aid\n- Cho: the van\n',
  'opening-hours': '- Tuesday: 10:00-16:00\n- Saturday: 9:00-13:00\n',
};

/** Creates a session that has reached its third task and waits for its agent. */
async function startDemoSession(turnpike: Turnpike): Promise<void> {
  const { sessions, home } = turnpike;
  const caller = MAINTAINER;
  // The directory for its notes.
  if (home !== null) mkdirSync(join(home.sandbox, 'case-handbook', 'notes'), { recursive: true });
  const spec = packageFile('docs/examples/spec.yaml');
  const session_id = (await sessions.start({ spec, case: 'case-handbook', by: caller })).data?.session_id;
  if (session_id === undefined) return;
  let answer: SessionAnswer = await sessions.next(session_id, { context_usage_pct: 3 }, caller);
  for (const [place, [task_id, text]] of Object.entries(NOTES).entries()) {
    const step = answer.data?.next_step;
    if (step?.type !== 'implement_task' || step.task_id !== task_id || step.run_id === null) return;
    await turnpike.submit(step.run_id, noteProposal(task_id, text, place + 1));
    const { step_id, type: step_type, step_proof } = step;
    const last_step_result = { step_id, step_type, outcome: 'success', step_proof, task_id };
    answer = await sessions.next(session_id, { last_step_result, context_usage_pct: 4 + place }, caller);
  }
}

const noteProposal = (task: string, content: string, number: number): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    reasoning: 'The note that the task asks for.',
    action: 'WRITE_FILE',
    args: { path: `/sandbox/notes/${task === 'contacts' ? 'contacts' : 'hours'}.md`, content },
  });

/** Waits for `ms` milliseconds or until the signal is aborted. */
const pause = (ms: number, signal: AbortSignal): Promise<unknown> =>
  ms === 0 ? Promise.resolve() : delay(ms, undefined, { signal }).catch(() => undefined);
