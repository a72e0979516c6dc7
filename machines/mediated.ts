// A mediated run: one privileged act, in a run of its own (S4 §5). One machine serves tool_gateway and db_write, and
// later db_read, promotion and export, because the contract gives all of them the same before, during and after.
//
//   created ─ AUTHORIZE ─▶ running ─┬─ performing ── RESULT ──────────▶ completed | failed | cancelled
//                                   └─ delegating ── its child ended ─▶ completed | failed | cancelled | denied
//
// A tool_gateway run whose action changes storage delegates to a db_write child; everything else performs.
//
// Invariants:
//   M1. `perform` is said once, on entering `performing`, which nothing reaches without an allow.
//   M2. STARTED goes to the parent when this run and every run below it are allowed; the step's EXECUTE waits for it.
//   M3. A cancel while an effect is under way waits for its result: what happened is told as it happened, and the run
//       then ends as cancelled.
//   M4. A child's denial is never turned into a completion (C52).

import {
  assign,
  emit,
  enqueueActions,
  sendParent,
  sendTo,
  setup,
  type ActorLogic,
  type AnyActorRef,
  type Snapshot,
} from 'xstate';
import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import type { AuditTarget } from '../src/contract/audit-event.js';
import type { Effect, EffectResult } from '../src/contract/effect.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../src/contract/fault.js';
import type { JsonObject } from '../src/contract/json.js';
import { childContext, childRunId, type RunContext } from '../src/contract/run-context.js';
import type { TerminalState } from '../src/contract/run-state.js';
import { authorizePrivileged, type PrivilegedRequest } from '../src/policy/lane-decision.js';
import type { Policy } from '../src/policy/policy.js';
import type { Verdict } from '../src/policy/verdict.js';
import { actionEvent, runCreated, type RunEnd } from '../src/run/audit.js';
import type { Emission } from './emission.js';
import {
  cancelledFor,
  created,
  ENDS,
  deniedBy,
  failedWith,
  isDone,
  sayAuthz,
  sayEnd,
  sayEnded,
  sayRunning,
  type Done,
  type DoneEvent,
  type RunEvent,
  type RunMemory,
  type RunOutput,
} from './run.js';

/** What the run is for. The same request goes from a tool_gateway run to its db_write child. */
export interface MediatedRequest {
  readonly privileged: PrivilegedRequest;
  /** SHA-256 of the canonical request (S4-60). */
  readonly hash: string;
  readonly effect: Omit<Effect, 'run_id' | 'idempotency_key'>;
  readonly local_read: boolean;
  readonly inputs: readonly ArtifactRef[];
  /** What a successful write leaves behind, where that is known beforehand. */
  readonly written: ArtifactRef | null;
}

export interface MediatedInput {
  readonly run: RunContext;
  readonly request: MediatedRequest;
}

export interface MediatedMemory extends RunMemory {
  readonly request: MediatedRequest;
  readonly done: Done;
}

export interface ResultEvent {
  readonly type: 'RESULT';
  readonly status: EffectResult['status'];
  readonly cause: ExecutionCause | null;
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
}

export type MediatedEvent = RunEvent | ResultEvent | { readonly type: 'STARTED' } | DoneEvent;
export type MediatedLogic = ActorLogic<
  Snapshot<RunOutput>,
  MediatedEvent,
  MediatedInput,
  AnyActorRef['system'],
  Emission
>;

/** The child of a delegating run is its first and only one. */
const childId = (run: RunContext): string => childRunId(run.run_id, 1);

const setupMediated = (policy: Policy) =>
  setup({
    types: {} as {
      context: MediatedMemory;
      events: MediatedEvent;
      input: MediatedInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'db_write'>;
    },
    actors: {} as { db_write: MediatedLogic },
    guards: {
      allowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      delegates: ({ context }) => context.run.run_kind === 'tool_gateway' && context.request.privileged.write !== null,
      cancelling: ({ context }) => context.end !== null,
      succeeded: ({ event }) => event.type === 'RESULT' && event.status === 'done',
      childEnded: ({ event }, { state }: { state: TerminalState }) => isDone(event) && event.output.state === state,
    },
    actions: {
      sayCreated: emit(({ context }) => sayCreated(context)),
      sayAuthz: emit(({ context, event }) => sayAuthz(context.run, verdictOf(event), targetOf(context))),
      sayRunning: emit(({ context }) => sayRunning(context.run)),
      sayEnd: emit(({ context }, { state }: { state: TerminalState }) => sayEnd(context, state)),
      sayEnded: emit(({ context }, { state }: { state: TerminalState }) => sayEnded(context, state)),
      sayAction: emit(({ context }) => acted(context)),
      perform: emit(({ context }) => performCommand(context)),
      tellStarted: sendParent({ type: 'STARTED' }),
      delegate: enqueueActions(({ context, enqueue }) => {
        const child = childContext(context.run, childId(context.run), 'db_write');
        const request = writeRequest(context.request);
        enqueue.spawnChild('db_write', { id: child.run_id, input: { run: child, request } });
        const verdict = authorizePrivileged(child, request.privileged, policy);
        enqueue.sendTo(child.run_id, { type: 'AUTHORIZE', verdict });
      }),
      cancelChild: sendTo(
        ({ context }) => childId(context.run),
        ({ event }) => event,
      ),
      noteDenied: assign({
        end: ({ event }) => deniedBy(verdictOf(event)),
        done: ({ event }) => ({ result: null, result_ref: null, cause: null, denied_by: verdictOf(event) }),
      }),
      noteCancel: assign({
        end: ({ context, event }) =>
          context.end ?? cancelledFor(event.type === 'CANCEL' ? event.reason : 'parent_ended'),
      }),
      noteResult: assign(({ context, event }) => (event.type === 'RESULT' ? resultOf(context, event) : {})),
      noteChild: assign(({ context, event }) =>
        isDone(event) ? { end: event.output.end, done: event.output.done ?? context.done } : {},
      ),
    },
  });

/** The machine of one mediated run, judged by `policy`. `db_write` must be provided where the run may delegate. */
export const createMediatedMachine = (policy: Policy) =>
  setupMediated(policy).createMachine({
    id: 'mediated',
    context: ({ input: { run, request } }) => ({
      run,
      request,
      end: null,
      done: { result: null, result_ref: null, cause: null, denied_by: null },
    }),
    initial: 'created',
    states: {
      created: created('noteCancel'),
      running: {
        initial: 'choosing',
        states: {
          choosing: { always: [{ guard: 'delegates', target: 'delegating' }, { target: 'performing' }] },
          performing: {
            entry: ['perform', 'tellStarted'],
            on: {
              RESULT: [
                { guard: 'cancelling', target: '#mediated.cancelled', actions: ['noteResult', 'sayAction'] },
                { guard: 'succeeded', target: '#mediated.completed', actions: ['noteResult', 'sayAction'] },
                { target: '#mediated.failed', actions: ['noteResult', 'sayAction'] },
              ],
              CANCEL: { actions: 'noteCancel' },
            },
          },
          delegating: {
            entry: 'delegate',
            on: {
              STARTED: { actions: 'tellStarted' },
              'xstate.done.actor.*': [
                childEnds('completed', ['noteChild', 'sayAction']),
                childEnds('failed', ['noteChild', 'sayAction']),
                childEnds('cancelled', ['noteChild', 'sayAction']),
                { target: '#mediated.denied', actions: 'noteChild' },
              ],
              CANCEL: { actions: 'cancelChild' },
            },
          },
        },
      },
      ...ENDS,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
export type MediatedMachine = ReturnType<typeof createMediatedMachine>;

function childEnds<const S extends TerminalState, const A extends readonly string[]>(state: S, actions: A) {
  return { guard: { type: 'childEnded', params: { state } }, target: `#mediated.${state}`, actions } as const;
}

const verdictOf = (event: MediatedEvent): Verdict =>
  event.type === 'AUTHORIZE' ? event.verdict : { decision: 'deny', rule_id: 'run.no_verdict', cause: 'LIFECYCLE' };

/** The same request, as the db_write run is asked for it: the write alone. */
const writeRequest = ({ privileged, hash, effect, local_read, inputs, written }: MediatedRequest): MediatedRequest => ({
  privileged: {
    tool: null,
    write: privileged.write,
    target_case_id: privileged.target_case_id,
    destination: privileged.destination,
    plane: privileged.plane,
    artifact_flags: privileged.artifact_flags,
  },
  hash,
  effect,
  local_read,
  inputs,
  written,
});

/** What the run acts on, for the audit: the tool of a gateway, the table of a write. */
function targetOf({ request }: MediatedMemory): AuditTarget {
  const { tool, write } = request.privileged;
  if (tool !== null) return { target_type: 'tool', name: tool, operation: request.effect.action };
  return write === null
    ? { target_type: 'system', name: request.effect.action }
    : { target_type: 'table', name: write.table, operation: write.mode };
}

const sayCreated = (context: MediatedMemory): Emission => ({
  type: 'run_created',
  body: runCreated(context.run, {
    request: { name: targetOf(context).name, hash_sha256: context.request.hash },
    exposure: null,
    link: null,
  }),
});

const performCommand = ({ run, request }: MediatedMemory): Emission => ({
  type: 'command',
  command: {
    kind: 'perform',
    run_id: run.run_id,
    effect: {
      action: request.effect.action,
      args: request.effect.args,
      case_id: request.effect.case_id,
      run_id: run.run_id,
      idempotency_key: run.run_id,
      before: request.effect.before,
      limits: request.effect.limits,
    },
    local_read: request.local_read,
  },
});

function resultOf(context: MediatedMemory, event: ResultEvent): Partial<MediatedMemory> {
  const { result, result_ref } = event;
  if (event.status === 'done') return { done: { result, result_ref, cause: null, denied_by: null } };
  const cause = event.status === 'unknown' ? 'OUTCOME_UNKNOWN' : (event.cause ?? 'INTERNAL');
  return {
    end: context.end ?? failureOf(cause),
    done: { result: null, result_ref: null, cause, denied_by: null },
  };
}

const failureOf = (cause: ExecutionCause): RunEnd =>
  failedWith(cause, EXECUTION_CAUSES[cause].message, EXECUTION_CAUSES[cause].retryable);

const acted = (context: MediatedMemory): Emission => {
  const { run, request, done } = context;
  const type = run.run_kind === 'db_write' ? 'db_write' : 'tool_call';
  return {
    type: 'audit_event',
    body: actionEvent(run, {
      type,
      target: targetOf(context),
      request_hash: request.hash,
      inputs: request.inputs,
      response: done.result_ref,
      output: done.result === null ? null : (request.written ?? done.result_ref),
      end: done.cause === null ? null : failureOf(done.cause),
      critical: done.cause === 'SANDBOX_CHANGED' || done.cause === 'OUTCOME_UNKNOWN',
    }),
  };
};
