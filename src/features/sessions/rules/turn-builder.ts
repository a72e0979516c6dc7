// Applies one command: collects the new state, the session events, and the orders to its runs.

import type { SessionEvent, SessionEventName, SessionVouch } from '../contract/session-records.js';
import type { SessionAnswer, SessionErrorCode } from '../contract/session-answer.js';
import { rejectionAnswer } from './command-answer.js';
import type { SessionRole } from '../contract/session.js';
import type { SessionSpec } from '../contract/session-spec.js';
import type { Actor } from '../../../core/contract/shapes.js';
import type { JsonObject } from '../../../core/contract/json.js';
import type { SessionState } from './session-state.js';

/** The input of a command. Everything external that the rules need is here, as data. */
export interface CommandContext {
  readonly time: string;
  readonly input_id: string;
  readonly actor: Actor;
  readonly role: SessionRole;
  readonly vouch: SessionVouch;
  /** The report of a `next`, without its proof; null if the command has no report. */
  readonly report: JsonObject | null;
  /** The spec of a `rebase`. */
  readonly new_spec: SessionSpec | null;
  readonly work: StepWork;
}

/** What the runs of the outstanding step have changed. */
export interface StepWork {
  /** Paths inside the sandbox that they have changed, as `/sandbox/...`, each once. */
  readonly touched: readonly string[];
  /** Whether any of its runs is still working. */
  readonly busy: boolean;
  /** Whether its lane rejects unmediated work, which the platform has not seen. */
  readonly refuses_unmediated: boolean;
}

/** An order of a session to its orchestrator runs. */
export type RunOrder =
  | { readonly kind: 'open_activation'; readonly run_id: string }
  | { readonly kind: 'start_agent'; readonly activation: string; readonly run_id: string; readonly lane_id: string }
  | { readonly kind: 'end_agent'; readonly activation: string; readonly run_id: string }
  | {
      readonly kind: 'start_check';
      readonly activation: string;
      readonly run_id: string;
      readonly act: { readonly action: string; readonly args: JsonObject };
    }
  | { readonly kind: 'close_activation'; readonly activation: string; readonly reason: string };

/** The kernel sets the timestamp and the position in the ledger. */
export type SessionEventDraft = { -readonly [K in keyof SessionEvent]: SessionEvent[K] };

export interface Turn {
  readonly state: SessionState;
  readonly events: readonly SessionEventDraft[];
  readonly orders: readonly RunOrder[];
  /** Null if the answer waits for a run. */
  readonly answer: SessionAnswer | null;
}

type EventSubject = Partial<Pick<SessionEvent, 'step_id' | 'step_type' | 'task_id' | 'phase_id' | 'run_id'>>;
const NO_SUBJECT = { step_id: null, step_type: null, task_id: null, phase_id: null, run_id: null };

export class TurnBuilder {
  state: SessionState;
  readonly #initialState: SessionState;
  readonly #caller: Pick<CommandContext, 'actor' | 'role'>;
  readonly #events: SessionEventDraft[] = [];
  readonly #orders: RunOrder[] = [];

  constructor(state: SessionState, caller: Pick<CommandContext, 'actor' | 'role'>) {
    this.state = { ...state, state_version: state.state_version + 1 };
    this.#initialState = state;
    this.#caller = caller;
  }

  set(update: Partial<SessionState>): void {
    this.state = { ...this.state, ...update };
  }

  /** Records an event, with the state at this point. */
  recordEvent(event: SessionEventName, subject: EventSubject = {}, detail: JsonObject = {}): void {
    const { session_id, status, state_version, pause_reason, failure_reason } = this.state;
    const { actor, role } = this.#caller;
    this.#events.push({
      feature: 'sessions',
      session_id,
      event,
      timestamp_utc: '',
      status,
      state_version,
      pause_reason,
      failure_reason,
      ...NO_SUBJECT,
      ...subject,
      actor,
      role,
      detail,
    });
  }

  addOrder(order: RunOrder): void {
    this.#orders.push(order);
  }

  build(answer: SessionAnswer | null): Turn {
    return { state: this.state, events: this.#events, orders: this.#orders, answer };
  }

  /** Rejects the command: nothing changes. */
  reject(code: SessionErrorCode, details: readonly string[] = []): Turn {
    return this.buildUnchanged(rejectionAnswer(this.#initialState, code, details));
  }

  /** Returns the state unchanged, including its version. */
  buildUnchanged(answer: SessionAnswer): Turn {
    return { state: this.#initialState, events: [], orders: [], answer };
  }
}
