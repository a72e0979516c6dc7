// `turnpike serve --demo`: creates a home directory of its own and fills it with the recorded working session, the same
// session mixed with attacks, a session of a spec, and an export that waits for approval. Agents then continue, one
// step at a time.

import { cpSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { winstonLog } from '../../system/winston-log.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { FEATURES } from '../../features/declare-features.js';
import type { AgentRun } from '../../runtime/agents/agent-run.js';
import { packageFile } from '../../system/package-files.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../host/turnpike.js';

const STEP_MS = 900;
const PAUSE_MS = 4_000;
/** Requests the export. The page has another actor, because a requester may not approve. */
const GOVERNANCE = { actor: 'governance', role: 'ATTORNEY_ADMIN' } as const;

/** Adds what a feature shows to the demonstration. */
export type DemoStep = (turnpike: Turnpike) => Promise<void>;

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
  for (const { demonstrate } of FEATURES) await (await demonstrate?.())?.(turnpike);
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

/** Waits for `ms` milliseconds or until the signal is aborted. */
const pause = (ms: number, signal: AbortSignal): Promise<unknown> =>
  ms === 0 ? Promise.resolve() : delay(ms, undefined, { signal }).catch(() => undefined);
