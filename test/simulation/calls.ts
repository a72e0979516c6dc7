// The calls of clients and their results. Every call ends, and every reported result was in the ledger at that time.

import { CodedError } from '../../src/core/errors.js';
import { isTerminal } from '../../src/core/contract/run/run-context.js';
import type { RunEnding } from '../../src/runtime/agents/agent-run.js';
import { count } from './faults.js';
import type { Process } from './process.js';
import type { World } from './world.js';

/** D4: one in progress and 64 queued. */
const QUEUE_MAX = 65;

export interface Call {
  readonly kind: 'start' | 'submit' | 'end' | 'cancel' | 'interrupt' | 'find' | 'look';
  readonly process: Process;
  /** Empty for a start. */
  readonly run_id: string;
  readonly payload?: Uint8Array;
  readonly inputId?: string;
  /** Whether the options are invalid. */
  readonly wrong?: boolean;
}

export interface OpenCall extends Call {
  /** Counts, at the start of the call, of failed reads, of local reads answered by promises, and of restarts. */
  readonly before: Pick<Process, 'readFailures' | 'promisedReads' | 'restarts'>;
  /** How many calls waited for the same agent at its start. */
  readonly ahead: number;
}

export class Calls {
  readonly #world: World;
  readonly #open = new Set<OpenCall>();
  readonly #waiting = new Map<string, number>();
  readonly outcomes = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Makes a call and follows it to its end. It calls `make` itself, so that a synchronous exception counts too.
   * `onResult` receives the result, unless its process has died before.
   */
  follow<T>(call: Call, make: () => Promise<T>, onResult: (value: T, call: OpenCall) => void): void {
    const { process } = call;
    const { readFailures, promisedReads, restarts } = process;
    const queue = `${process.id} ${call.run_id}`;
    const ahead = this.#waiting.get(queue) ?? 0;
    const open: OpenCall = { ...call, before: { readFailures, promisedReads, restarts }, ahead };
    this.#open.add(open);
    count(this.#waiting, queue);
    const done = (): boolean => {
      this.#open.delete(open);
      count(this.#waiting, queue, -1);
      return process.alive;
    };
    make().then(
      (value) => {
        if (!done()) return;
        this.#world.ledger.sync();
        onResult(value, open);
      },
      (error: unknown) => {
        if (!done()) return;
        this.#world.ledger.sync();
        this.#refused(open, error);
      },
    );
  }

  /** A response to a payload. */
  responded(call: OpenCall, response: string): void {
    const { ledger, history } = this.#world;
    const { run_id, payload = new Uint8Array(), inputId, process } = call;
    history.note(`response to ${run_id} ${inputId ?? ''}: ${response}`);
    const shown = JSON.parse(response) as Record<string, unknown>;
    const { outcome, result, error } = shown;
    const whole =
      !('outcome' in shown) || ((outcome === 'SUCCESS') === (error === null) && (error === null) === (result !== null));
    if (!whole) history.report('step.complete', `the response ${response} is not one of the four`);
    if (ledger.steps.claim(run_id, payload, { response, ...(inputId === undefined ? {} : { inputId }) })) {
      count(this.outcomes, String(outcome ?? shown['decision']));
      return;
    }
    // D2: only a failed write of the ledger stops anything.
    if (isAuditFailure(shown) && wasBroken(call)) {
      count(this.outcomes, 'AUDIT_FAILURE');
      return;
    }
    history.report(
      'acknowledged.durable',
      `process ${process.id} answers ${run_id} with ${response}, which is not durable`,
    );
  }

  /** How a run ended, as its owner is notified. */
  ended(process: Process, { run_id, state, reason }: RunEnding): void {
    const { ledger, history } = this.#world;
    if (!process.alive) return;
    ledger.sync();
    history.note(`${run_id} has ended: ${state} ${reason}`);
    if (reason === 'AUDIT_FAILURE' && process.broken) return;
    const life = ledger.lives.get(run_id);
    if (life?.state === state && reason.startsWith(life.reason)) return;
    history.report(
      'acknowledged.durable',
      `${run_id} is reported as ${state} (${reason}), is ${life?.state ?? 'nothing'}`,
    );
  }

  /** When no event is left, no call is pending. */
  checkAllEnded(): void {
    for (const { kind, run_id, process } of this.#open) {
      if (!process.alive) continue;
      this.#world.history.report('caller.answer', `${kind} of ${run_id} in process ${process.id} is never answered`);
    }
  }

  forgetDead(): void {
    for (const open of this.#open) if (!open.process.alive) this.#open.delete(open);
  }

  /** While a ledger closes, pending calls can no longer read it. */
  #isExcused(call: OpenCall): boolean {
    const { process, before } = call;
    return wasBroken(call) || process.readFailures > before.readFailures || process.phase !== 'open';
  }

  #refused(call: OpenCall, error: unknown): void {
    const { history } = this.#world;
    const code = error instanceof CodedError ? (error as CodedError).code : String(error);
    count(this.outcomes, code);
    history.note(`${call.kind} of ${call.run_id} is refused: ${code}`);
    if (this.#isRight(call, code)) return;
    const stack = error instanceof Error ? (error.stack ?? '') : '';
    history.report('caller.answer', `${call.kind} of ${call.run_id} is refused with ${code}: ${stack}`);
  }

  /** Whether an error is justified. */
  #isRight(call: OpenCall, code: string): boolean {
    const { process, run_id, kind } = call;
    const { lives } = this.#world.ledger;
    const life = lives.get(run_id);
    switch (code) {
      case 'RUN_ENDED':
        return wasBroken(call) || (life !== undefined && isTerminal(life.state));
      case 'RUN_UNKNOWN':
        return life?.created.run_kind !== 'agent';
      case 'AGENT_BUSY':
        return call.ahead >= QUEUE_MAX;
      case 'CLOSED':
        return process.phase !== 'open';
      case 'INVALID_STATE_TRANSITION':
        return kind === 'cancel' && life !== undefined && isTerminal(life.state);
      case 'USAGE':
        return call.wrong === true;
      case 'POLICY_UNREADABLE':
      case 'POLICY_INVALID':
        return kind === 'start';
      case 'INVARIANT':
        return process.promisedReads > call.before.promisedReads;
      case 'LEDGER_UNAVAILABLE':
        return this.#isExcused(call);
      default:
        return false;
    }
  }
}

/** Whether a write of the ledger failed at some time since the call began. */
const wasBroken = ({ process, before }: OpenCall): boolean => process.broken || process.restarts > before.restarts;

/** D2. If only the decision is shown, all that is visible is that it failed. */
const isAuditFailure = (shown: Record<string, unknown>): boolean => {
  const error = shown['error'] as { readonly error_code: string } | null | undefined;
  return error === undefined
    ? shown['decision'] === 'ALLOW' && shown['result'] === null
    : error?.error_code === 'AUDIT_FAILURE';
};
