// The work of agents in one life of a process: some attached, some remote, concurrently, each by its own seeded script.
// Clients note each request before they send it, like a client that will repeat it after a crash.

import { createHash } from 'node:crypto';
import type { StepResponse } from '../../src/core/contract/run/response.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import type { Turnpike } from '../../src/host/turnpike.js';
import { codeOf } from './codes.js';
import { append, linesOf, type Places } from './journal.js';
import { CASES, script, type Ask } from './script.js';

/** The output of a victim, each line only when it has received the result itself. */
export type Said =
  | { readonly said: 'booted' }
  | { readonly said: 'opened'; readonly settled: number; readonly interrupted: number; readonly damaged: number }
  | { readonly said: 'refused'; readonly code: string }
  | { readonly said: 'started'; readonly run_id: string; readonly link: 'attached' | 'remote' }
  | {
      readonly said: 'response';
      readonly run_id: string;
      readonly input_id: string | null;
      readonly payload_sha256: string;
      readonly response_sha256: string;
      /** Sent before, under the same input id. */
      readonly again: boolean;
    }
  | { readonly said: 'audit_failure'; readonly run_id: string }
  | { readonly said: 'error'; readonly run_id: string; readonly input_id: string | null; readonly code: string }
  | { readonly said: 'ended'; readonly run_id: string; readonly state: string; readonly reason: string }
  | { readonly said: 'lag'; readonly entries: number };

/** One request as its client noted it. */
interface Noted {
  readonly run_id: string;
  readonly input_id: string | null;
  readonly payload: string;
  readonly link: 'attached' | 'remote';
}

export interface Work {
  readonly turnpike: Turnpike;
  readonly places: Places;
  readonly say: (said: Said) => void;
  readonly seed: number;
  readonly life: string;
  readonly attached: number;
  readonly remote: number;
  readonly steps: number;
}

/** How many of the requests of earlier lives are repeated. */
const ASKED_AGAIN_MAX = 8;

export async function work(task: Work): Promise<void> {
  const noted = linesOf(task.places.client) as readonly Noted[];
  await askAgain(task, noted);
  const agents = [...(await takenUp(task, noted)), ...(await started(task))];
  await Promise.all(agents.map(({ run, link }, index) => follow(task, run, link, index)));
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Requests the lost responses again, and some of the others. */
async function askAgain(task: Work, noted: readonly Noted[]): Promise<void> {
  for (const { run_id, input_id, payload } of noted.filter((each) => each.input_id !== null).slice(-ASKED_AGAIN_MAX)) {
    const inputId = input_id ?? '';
    await reportResult(task, { run_id, input_id, payload, again: true }, () =>
      task.turnpike.submit(run_id, payload, { inputId }).then((response) => JSON.stringify(response)),
    );
  }
}

interface Held {
  readonly run: AgentRun;
  readonly link: 'attached' | 'remote';
}

async function takenUp({ turnpike, remote }: Work, noted: readonly Noted[]): Promise<readonly Held[]> {
  const ids = new Set(noted.filter(({ link }) => link === 'remote').map(({ run_id }) => run_id));
  const held: Held[] = [];
  for (const run_id of [...ids].reverse()) {
    const run = held.length < remote ? await turnpike.agent(run_id) : null;
    if (run !== null) held.push({ run, link: 'remote' });
  }
  return held;
}

async function started({ turnpike, say, attached, remote }: Work): Promise<readonly Held[]> {
  const links = [...Array<'attached'>(attached).fill('attached'), ...Array<'remote'>(remote).fill('remote')];
  return Promise.all(
    links.map(async (link, index) => {
      const run = await turnpike.startAgent({ link, case: CASES[index % 2] ?? CASES[0] });
      say({ said: 'started', run_id: run.run_id, link });
      void run.finished.then(
        ({ run_id, state, reason }) => say({ said: 'ended', run_id, state, reason }),
        () => undefined,
      );
      return { run, link };
    }),
  );
}

/** One agent follows its script, one step after another. */
async function follow(task: Work, run: AgentRun, link: Held['link'], index: number): Promise<void> {
  const { seed, life, steps } = task;
  const asks = script({ seed: seed * 1_009 + index, who: `${life}-${index}`, steps, remote: link === 'remote' });
  for (const ask of asks) {
    if (ask.what === 'end') {
      await run.end().catch(() => undefined);
      return;
    }
    if (!(await proposed(task, run, link, ask))) return;
  }
}

/** @returns whether the agent can continue */
async function proposed(
  task: Work,
  run: AgentRun,
  link: Held['link'],
  { payload, inputId, again }: Extract<Ask, { what: 'propose' }>,
): Promise<boolean> {
  const { run_id } = run;
  const input_id = inputId ?? null;
  append(task.places.client, { run_id, input_id, payload, link } satisfies Noted);
  const options = inputId === undefined ? {} : { inputId };
  return reportResult(task, { run_id, input_id, payload, again }, () => run.respond(payload, options));
}

interface Asked {
  readonly run_id: string;
  readonly input_id: string | null;
  readonly payload: string;
  readonly again: boolean;
}

async function reportResult(
  { say }: Work,
  { run_id, input_id, payload, again }: Asked,
  ask: () => Promise<string>,
): Promise<boolean> {
  try {
    const response = await ask();
    if (isAuditFailure(response)) {
      say({ said: 'audit_failure', run_id });
      return false;
    }
    const hashes = { payload_sha256: sha256(payload), response_sha256: sha256(response) };
    say({ said: 'response', run_id, input_id, ...hashes, again });
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    say({ said: 'error', run_id, input_id, code });
    return false;
  }
}

/** D2: the one response that is not in the ledger. */
const isAuditFailure = (response: string): boolean => {
  const { error } = JSON.parse(response) as Partial<Extract<StepResponse, { error: unknown }>>;
  return error?.error_code === 'AUDIT_FAILURE';
};
