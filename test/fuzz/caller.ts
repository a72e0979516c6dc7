// One of many concurrent clients of a Turnpike. It submits payloads to agent runs, and opens a new run when one has
// ended.

import { performance } from 'node:perf_hooks';
import { RunError } from '../../src/core/errors.js';
import type { AgentOptions, AgentRun, SubmitOptions } from '../../src/runtime/agents/agent-run.js';
import { textOf } from './bytes.js';
import type { Exchange } from './checks.js';
import { caseOf, type Opened } from './world.js';

export interface Sent extends Exchange {
  /**
   * From the call to the response, in milliseconds. The client shares the process with many others, so one value says
   * little.
   */
  readonly ms: number;
  readonly case_id: string;
}

/** A run and all its responses, in order. */
export interface RunLog {
  readonly run_id: string;
  readonly sent: Sent[];
}

export interface Talk {
  readonly runs: RunLog[];
  /** Payloads that arrived after the run had ended: they were refused as RUN_ENDED and submitted to the next run. */
  late: number;
  readonly violations: { readonly what: string; readonly payload: Uint8Array }[];
}

/** After this number of violations a chunk stops. */
export const VIOLATIONS_MAX = 20;

/** Callers differ in their identity, in their exposure, and in how they submit. */
const agentOf = (caller: number): AgentOptions => ({
  case: caseOf(caller),
  ...(caller % 3 === 1 ? { exposure: 'decision' } : {}),
  ...(caller % 8 === 5 ? { link: 'remote' } : {}),
  ...(caller % 16 === 7
    ? { lane: 'TOOL_INTERVIEW_CAPTURE', role: 'INTERVIEW_AGENT', scope: { client_session_id: 'cs-1' } }
    : {}),
});
/** Some callers do not wait for a response before the next payload. */
const widthOf = (caller: number): number => (caller % 4 === 3 ? 4 : 1);
/** Some callers submit everything twice, as if the first response had been lost. */
const sendsTwice = (caller: number): boolean => caller % 8 === 6;

/** Submits `payloads` to runs of one caller; resolves when each of them has a response. */
export async function feed(turnpike: Opened, caller: number, payloads: readonly Uint8Array[]): Promise<Talk> {
  const talk: Talk = { runs: [], late: 0, violations: [] };
  const width = widthOf(caller);
  let run: LiveRun | null = null;
  for (let from = 0; from < payloads.length; from += width) {
    let waiting: readonly Uint8Array[] = payloads.slice(from, from + width);
    while (waiting.length > 0 && talk.violations.length < VIOLATIONS_MAX) {
      const fresh: boolean = run === null;
      try {
        run ??= await openRun(turnpike, caller, talk);
      } catch (error) {
        report(talk, waiting, `a run could not be started: ${wordsOf(error)}`);
        return talk;
      }
      const refused = await send(run, waiting, talk);
      if (fresh && refused.length === waiting.length) {
        report(talk, waiting, 'a new run took no payload');
        return talk;
      }
      waiting = refused;
      if (waiting.length > 0) run = null;
    }
  }
  return talk;
}

interface LiveRun {
  readonly agent: AgentRun;
  readonly log: RunLog;
  readonly caller: number;
  requests: number;
}

async function openRun(turnpike: Opened, caller: number, talk: Talk): Promise<LiveRun> {
  const agent = await turnpike.startAgent(agentOf(caller));
  const log: RunLog = { run_id: agent.run_id, sent: [] };
  talk.runs.push(log);
  return { agent, log, caller, requests: 0 };
}

const report = (talk: Talk, [payload = new Uint8Array()]: readonly Uint8Array[], what: string): void =>
  void talk.violations.push({ what, payload });

const wordsOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

type Answer = { readonly response: string; readonly ms: number } | 'late' | { readonly error: unknown };

/** @returns the payloads that arrived after the run had ended */
async function send(run: LiveRun, payloads: readonly Uint8Array[], talk: Talk): Promise<readonly Uint8Array[]> {
  const answers = await Promise.all(payloads.map((payload) => ask(run, payload, talk)));
  const refused: Uint8Array[] = [];
  answers.forEach((answer, index) => {
    const payload = payloads[index]!;
    if (answer === 'late') {
      refused.push(payload);
    } else if ('error' in answer) {
      report(talk, [payload], `thrown: ${wordsOf(answer.error)}`);
    } else {
      if (refused.length > 0) report(talk, [payload], 'a run that had ended took a payload');
      run.log.sent.push({ payload, ...answer, case_id: caseOf(run.caller) });
    }
  });
  talk.late += refused.length;
  return refused;
}

async function ask(run: LiveRun, payload: Uint8Array, talk: Talk): Promise<Answer> {
  run.requests += 1;
  const options: SubmitOptions = sendsTwice(run.caller) ? { inputId: `request-${run.requests}` } : {};
  // Callers may pass text as well, which must make no difference.
  const raw = run.requests % 16 === 0 ? (textOf(payload) ?? payload) : payload;
  const start = performance.now();
  try {
    const response = await run.agent.respond(raw, options);
    const ms = performance.now() - start;
    const again = options.inputId === undefined ? response : await run.agent.respond(raw, options);
    if (again !== response) {
      report(talk, [payload], `the same request, sent again, got ${again} and not ${response}`);
    }
    return { response, ms };
  } catch (error) {
    return error instanceof RunError && error.code === 'RUN_ENDED' ? 'late' : { error };
  }
}
