// The states that every run machine has at its top level, and the transitions of the lifecycle contract (S4 §3).
//
//            AUTHORIZE (allow)                 its own work is done
//   created ───────────────────▶ running ─────────────────────────▶ completed
//      │  └─ AUTHORIZE (deny) ─▶ denied ◀── denied ──┤├── failed ──▶ failed
//      └──── CANCEL ──────────▶ cancelled ◀─ CANCEL ─┘
//
// Invariants:
//   R1. The parent creates a run. AUTHORIZE carries the verdict; without one the run stays in `created`.
//       Entry order: run_created, authz_decision, system(running), ..., system(terminal) (C47).
//   R2. A terminal state has no transition, and entering it emits exactly one system event with its reason.
//   R3. A run ends its children first: none is live when it enters a terminal state (C53).
//   R4. The memory is plain JSON.

import type { ReportOrigin } from '../src/core/contract/run/report-origin.js';
import type { RunContext, TerminalState } from '../src/core/contract/run/run-context.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import { authzEvent, endEvent, runningEvent, type RunEnd } from '../src/core/run/audit-events.js';
import type { AuditTarget } from '../src/core/contract/run/audit-event.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, Amounts } from '../src/core/contract/run/budget.js';
import type { ExecutionCause } from '../src/core/contract/fault.js';
import type { JsonObject } from '../src/core/contract/json.js';
import type { Emission } from './emission.js';
import { optionalValues } from '../src/core/contract/policy/pins.js';
import type { OpeningInput } from '../src/core/contract/run/entry.js';

/** The context of every run machine. */
export interface RunMemory {
  readonly run: RunContext;
  /** Why the run is ending or has ended; null before that. */
  readonly end: RunEnd | null;
  /** Orchestrator and agent runs only: the configuration that they started with, and what they have produced (C91). */
  readonly inputs?: readonly ArtifactRef[];
  readonly outputs?: readonly ArtifactRef[];
  /** Agent runs only: prompts that came after the start. */
  readonly prompts?: readonly ArtifactRef[];
}

export type RunEvent =
  | {
      readonly type: 'AUTHORIZE';
      readonly verdict: Verdict;
      readonly overlay: OverlayFact | null;
      readonly digest: string | null;
    }
  | { readonly type: 'CANCEL'; readonly reason: string };

/** The output of an ended run, which its parent receives. */
export interface RunOutput {
  readonly run_id: string;
  readonly state: TerminalState;
  readonly end: RunEnd;
  /** Null unless the run is mediated. */
  readonly done: MediatedOutcome | null;
  /** Agent runs only: the amounts used. */
  readonly spent: Amounts | null;
  /** References to what it has produced. */
  readonly outputs?: readonly ArtifactRef[];
}

/** Mediated runs only: the result of the action, or the rule that denied it. */
export interface MediatedOutcome {
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  readonly cause: ExecutionCause | null;
  readonly denied_by: Verdict | null;
  /** Timestamp of the executor's result; null if there was none. */
  readonly at: string | null;
  /** What the tool says of its failure, for an agent with the exposure `explained` (C94). */
  readonly explanation_ref?: ArtifactRef;
  /** Who reported the outcome, if the platform has not executed the action (U-08). */
  readonly reported?: ReportOrigin;
}

export interface DoneEvent {
  readonly type: 'xstate.done.actor.*';
  readonly actorId: string;
  readonly output: RunOutput;
}

/** XState names the event after the actor that is done; the wildcard subscribes to all of them. */
export const isDoneEvent = <E extends { readonly type: string }>(
  event: E,
): event is Extract<E, { readonly type: 'xstate.done.actor.*' }> => event.type.startsWith('xstate.done.actor.');

export const COMPLETED_END: RunEnd = { reason: 'completed', error: null };

export const denialEnd = (verdict: Pick<Verdict, 'rule_id'>): RunEnd => ({ reason: verdict.rule_id, error: null });

export const cancellationEnd = (reason: string): RunEnd => ({ reason, error: null });

export const failureEnd = (error_code: string, message: string, retryable: boolean): RunEnd => ({
  reason: error_code,
  error: { error_code, message, retryable },
});

/** The audit event for an AUTHORIZE. Any other event carries no decision. */
export const authzEmission = (
  run: RunContext,
  event: { readonly type: string },
  target: AuditTarget | null = null,
): Emission => ({
  type: 'audit_event',
  body: isAuthorizeEvent(event)
    ? authzEvent(run, event.verdict, { target, overlay: event.overlay, digest: event.digest })
    : authzEvent(run, NO_VERDICT, { target, overlay: null, digest: null }),
});

/** Fail closed: a run without a decision is denied. */
const NO_VERDICT: Verdict = { decision: 'deny', rule_id: 'run.no_verdict', cause: 'LIFECYCLE' };

type AuthorizeEvent = Extract<RunEvent, { readonly type: 'AUTHORIZE' }>;
const isAuthorizeEvent = (event: { readonly type: string }): event is AuthorizeEvent => event.type === 'AUTHORIZE';

/** The verdict that the event carries. */
export const verdictOf = (event: { readonly type: string }): Verdict =>
  isAuthorizeEvent(event) ? event.verdict : NO_VERDICT;

export const runningEmission = (run: RunContext, inputs: readonly ArtifactRef[] = []): Emission => ({
  type: 'audit_event',
  body: runningEvent(run, inputs),
});

export const endEmission = ({ run, end, outputs = [], prompts = [] }: RunMemory, state: TerminalState): Emission => ({
  type: 'audit_event',
  body: endEvent(run, state, end ?? COMPLETED_END, { inputs: prompts, outputs }),
});

export const runEndedEmission = ({ run, end }: RunMemory, state: TerminalState): Emission => ({
  type: 'ended',
  run_id: run.run_id,
  state,
  reason: (end ?? COMPLETED_END).reason,
});

/** One of the four terminal states: emits its event once, and returns its output to the parent. */
const finalState = <const State extends TerminalState>(state: State) =>
  ({
    type: 'final',
    entry: [
      { type: 'recordEnd', params: { state } },
      { type: 'emitRunEnded', params: { state } },
    ],
    output: ({ context }: { context: RunMemory }): RunOutput => outputOf(context, state),
  }) as const;

/** The four terminal states of every run machine. */
export const FINAL_STATES = {
  completed: finalState('completed'),
  failed: finalState('failed'),
  denied: finalState('denied'),
  cancelled: finalState('cancelled'),
} as const;

/**
 * The initial state of every run: emits its creation and waits for the verdict. `cancel` records why it was cancelled
 * before that.
 */
export const createdState = <const Cancel extends string>(cancel: Cancel) =>
  ({
    entry: 'recordCreation',
    on: {
      AUTHORIZE: [
        { guard: 'isAllowed', target: 'running', actions: ['recordAuthorization', 'recordRunning'] },
        { target: 'denied', actions: ['recordAuthorization', 'applyDenial'] },
      ],
      CANCEL: { target: 'cancelled', actions: cancel },
    },
  }) as const;

const outputOf = (
  context: RunMemory & {
    readonly done?: MediatedOutcome;
    readonly account?: Account;
    readonly request?: RequestedWrite;
  },
  state: TerminalState,
): RunOutput => ({
  run_id: context.run.run_id,
  state,
  end: context.end ?? COMPLETED_END,
  done: context.done ?? null,
  spent: context.account?.spent ?? null,
  outputs: context.outputs ?? producedArtifacts(context),
});

interface RequestedWrite {
  readonly written: ArtifactRef | null;
}

/** The artifacts of a completed mediated run: what it has written, or the result. */
function producedArtifacts({
  done,
  request,
}: {
  readonly done?: MediatedOutcome;
  readonly request?: RequestedWrite;
}): readonly ArtifactRef[] {
  const ref = done?.result == null ? null : (request?.written ?? done.result_ref);
  return ref === null ? [] : [ref];
}

// References to the content that an orchestrator or agent run was started with and has produced (S4-59, S4-61, C91).

/** An audit event contains at most 64 references; of a run's products, the last ones are listed. */
const REFS_MAX = 64;

/** Appends the references of `more` that are not in `known`, and keeps only the last ones if there are too many. */
export function withRefs(known: readonly ArtifactRef[], more: readonly ArtifactRef[]): readonly ArtifactRef[] {
  if (more.length === 0) return known;
  const added = more.filter(({ artifact_id }) => !known.some((ref) => ref.artifact_id === artifact_id));
  return added.length === 0 ? known : [...known, ...added].slice(-REFS_MAX);
}

/** The pinned configuration of a tree: policies, machines, and the texts that its scope names by hash. */
export const configurationOf = ({ policies, machines, notes = [] }: OpeningInput): readonly ArtifactRef[] => [
  policies.lanes.artifact,
  policies.roles.artifact,
  policies.actions.artifact,
  machines,
  ...optionalValues(policies).map(({ artifact }) => artifact),
  ...notes,
];
