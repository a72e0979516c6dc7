// Proposals, their traces and their responses: one of each, consistent with each other (S0-04, D4, C19).

import type { ProposalInput } from '../../src/core/contract/run/entry.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { isTerminal } from '../../src/core/contract/run/run-context.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import type { History } from './history.js';
import type { Lives } from './lives.js';

/** Phases that precede the recording of an id. */
const BEFORE_THE_ID = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA'];
const UNPRIVILEGED = ['THINK', 'FINISH'];

interface Step {
  readonly trace: StepTrace;
  /** Whether the caller chose the input id: only then may the response be returned again. */
  claimed: boolean;
}

export class Steps {
  readonly #history: History;
  readonly #lives: Lives;
  /** The proposal in progress, by agent run. */
  readonly #open = new Map<string, ProposalInput>();
  readonly #counts = new Map<string, number>();
  readonly #byInput = new Map<string, Step>();
  readonly #byPayload = new Map<string, Step[]>();
  readonly #accepted = new Set<string>();
  count = 0;

  constructor(history: History, lives: Lives) {
    this.#history = history;
    this.#lives = lives;
  }

  /** A proposal that was not refused: its step begins. */
  opened(input: ProposalInput): void {
    const { run_id, input_id } = input;
    if (this.#open.has(run_id)) this.#history.report('step.complete', `${run_id} takes ${input_id} during another one`);
    this.#open.set(run_id, input);
  }

  traced(trace: StepTrace): void {
    const { run_id, step_index, proposal_id } = trace;
    const at = `step ${step_index} of ${run_id}`;
    const input = this.#open.get(run_id);
    this.#open.delete(run_id);
    const life = this.#lives.get(run_id);
    if (life === undefined || isTerminal(life.state)) {
      this.#history.report('terminal.immutable', `${at}: the run is not running`);
    }
    if (input === undefined) {
      this.#history.report('step.complete', `${at} has a trace without a proposal`);
      return;
    }
    const key = `${run_id} ${input.input_id}`;
    if (this.#byInput.has(key)) this.#history.report('proposal.once', `${at} takes input ${input.input_id} once more`);
    const passed = trace.phase_failed_at === null || !BEFORE_THE_ID.includes(trace.phase_failed_at);
    if (passed && trace.replay_of === null && life !== undefined) {
      const id = `${life.created.root_run_id} ${(proposal_id ?? '').toLowerCase()}`;
      if (this.#accepted.has(id)) this.#history.report('proposal.once', `${at} accepts proposal ${id} once more`);
      this.#accepted.add(id);
    }
    const steps = (this.#counts.get(run_id) ?? 0) + 1;
    this.#counts.set(run_id, steps);
    if (step_index !== steps) this.#history.report('step.complete', `${at} is the step number ${steps}`);
    if (trace.payload.hash_sha256 !== input.payload.hash_sha256) {
      this.#history.report('step.complete', `${at} traces another payload`);
    }
    this.#mediated(trace, at);
    const step = { trace, claimed: false };
    const payload = `${run_id} ${trace.payload.hash_sha256}`;
    this.#byInput.set(key, step);
    this.#byPayload.set(payload, [...(this.#byPayload.get(payload) ?? []), step]);
    this.count += 1;
  }

  /** An agent run ends after its last step. */
  ended(run_id: string): void {
    if (this.#open.has(run_id)) this.#history.report('step.complete', `${run_id} ended within a step`);
  }

  /**
   * A response for a payload was returned. @returns false if the ledger contains no such response that is still due:
   * one response per proposal, unless the caller named the input and sent it again
   */
  claim(run_id: string, payload: Uint8Array, { response, inputId }: { response: string; inputId?: string }): boolean {
    const hash = sha256(response);
    if (inputId !== undefined) return this.#byInput.get(`${run_id} ${inputId}`)?.trace.response_sha256 === hash;
    const steps = this.#byPayload.get(`${run_id} ${sha256(payload)}`) ?? [];
    const step = steps.find(({ claimed, trace }) => !claimed && trace.response_sha256 === hash);
    if (step !== undefined) step.claimed = true;
    return step !== undefined;
  }

  /** The outcome in the trace must be that of the mediated run. */
  #mediated(trace: StepTrace, at: string): void {
    const { mediated_run_id, outcome, action, replay_of } = trace;
    if (mediated_run_id === null) {
      const acted = outcome === 'SUCCESS' && !UNPRIVILEGED.includes(action ?? '') && replay_of === null;
      if (acted) this.#history.report('effect.allowed', `${at} succeeded without a run of its own`);
      return;
    }
    const life = this.#lives.get(mediated_run_id);
    const ends = { SUCCESS: 'completed', EXECUTION_ERROR: 'failed', DENIED: 'denied', VALIDATION_ERROR: '' }[outcome];
    if (life === undefined || !isTerminal(life.state)) {
      this.#history.report('events.required', `${at} is over, its run ${life?.state ?? 'not there'}`);
    } else if (life.state !== ends && life.state !== 'cancelled') {
      this.#history.report('step.complete', `${at} is ${outcome}, its run ${life.state}`);
    } else if (outcome === 'SUCCESS' && life.judged !== 'allow') {
      this.#history.report('effect.allowed', `${at} succeeded without an allow`);
    }
  }
}
