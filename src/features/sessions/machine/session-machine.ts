// A session: the root of a tree in which an agent works through a spec, one step at a time (S3). It may be paused and
// resumed for any time. Each activation is an orchestrator run of its own, which this machine starts and ends.
// src/features/sessions/rules decides what a command changes; the machine decides when it applies, and what follows for
// the runs.
//
//   running ─┬─ COMMAND ─▶ settling ─▶ running | paused | failed | closing
//   paused  ─┤
//   failed  ─┘      closing ── the last activation has ended ─▶ completed | ended
//
// Invariants:
//   S1. It applies one command at a time, and emits its events, orders and answer together (C64).
//   S2. At most one activation is active; a closed one may still be ending.
//   S3. The session ends when no activation is left (C53).

import { assign, emit, enqueueActions, setup } from 'xstate';
import type { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { OpenSessionInput, SessionCommand } from '../contract/session-records.js';
import type { OverlayFact } from '../../../core/contract/policy/overlay.js';
import type { SessionStatus } from '../contract/session.js';
import type { SessionSpec } from '../contract/session-spec.js';
import type { RunContext } from '../../../core/contract/run/run-context.js';
import { sessionAnswer } from '../rules/command-answer.js';
import { applyCheckResult } from '../rules/checks.js';
import { applyCommand } from '../rules/apply-command.js';
import { handleActivationEnd } from '../rules/resume.js';
import { structureHash } from '../rules/spec/spec-structure.js';
import { activationId, createSession, type SessionState } from '../rules/session-state.js';
import { TurnBuilder, type CommandContext, type Turn } from '../rules/turn-builder.js';
import type { Emission } from '../../../../machines/emission.js';
import type { OrchestratorMachine } from '../../../../machines/orchestrator.js';
import {
  cancellationEnd,
  COMPLETED_END,
  isDoneEvent,
  type DoneEvent,
  type RunOutput,
} from '../../../../machines/run.js';
import { applyTurn, PLATFORM } from './apply-turn.js';

export interface SessionMachineInput {
  /** The context that its runs inherit; its run id is the session's. */
  readonly base: RunContext;
  readonly open: OpenSessionInput;
  readonly spec: SessionSpec;
  /** The configuration of its runs; empty if the tree does not record it (C91). */
  readonly inputs?: readonly ArtifactRef[];
}

export interface SessionMemory {
  readonly base: RunContext;
  readonly inputs?: readonly ArtifactRef[];
  readonly session: SessionState;
  /** Activations that have not ended. */
  readonly live: readonly string[];
  /** Who started the session. */
  readonly by: OpenSessionInput['by'];
  /** The timestamp of the last command or event. */
  readonly now: string;
}

export interface CommandEvent {
  readonly type: 'COMMAND';
  readonly command: SessionCommand;
  readonly context: CommandContext;
  readonly overlay: OverlayFact | null;
}
/** A run that the session waits for has ended. */
export interface ChildEndedEvent {
  readonly type: 'CHILD_ENDED';
  readonly output: RunOutput;
}
export type SessionMachineEvent = CommandEvent | ChildEndedEvent | DoneEvent;

export interface SessionMachineOutput extends RunOutput {
  readonly session: SessionState;
}

const statusTransition = (status: SessionStatus, target: string) =>
  ({ guard: { type: 'is', params: { status } }, target }) as const;

/** The session machine, with the machine of its activations. */
export const createSessionMachine = (orchestrator: OrchestratorMachine) =>
  setup({
    types: {} as {
      context: SessionMemory;
      events: SessionMachineEvent;
      input: SessionMachineInput;
      output: SessionMachineOutput;
      emitted: Emission;
      children: Record<string, 'orchestrator'>;
    },
    actors: { orchestrator },
    guards: {
      is: ({ context }, { status }: { status: SessionStatus }) => context.session.status === status,
      over: ({ context }, { status }: { status: SessionStatus }) =>
        context.live.length === 0 && context.session.status === status,
    },
    actions: {
      begin: enqueueActions(({ context, enqueue }) => {
        const { session, by } = context;
        const origin = { input_id: openInputId(session), time: session.created_at, overlay: null, requester: by };
        applyTurn(enqueue, context, firstTurn(session, by), origin);
      }),
      carryOut: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'COMMAND') return;
        const { input_id, time } = event.context;
        const turn = applyCommand(context.session, event.command, event.context);
        applyTurn(enqueue, context, turn, { input_id, time, overlay: event.overlay, requester: event.context });
      }),
      noteCheck: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'CHILD_ENDED') return;
        const { run_id, state, done } = event.output;
        const result = state === 'completed' ? (done?.result ?? null) : null;
        const ended = { run_id, result, time: done?.at ?? context.now };
        const after = applyCheckResult(context.session, ended, PLATFORM);
        if (after === null) return;
        applyTurn(enqueue, context, after.turn, { ...PLATFORM_ORIGIN, time: ended.time, input_id: after.input_id });
      }),
      noteActivation: enqueueActions(({ context, event, enqueue }) => {
        if (!isDoneEvent(event)) return;
        enqueue.stopChild(event.actorId);
        const { session } = context;
        const live = context.live.filter((run_id) => run_id !== event.actorId);
        enqueue.assign({ live });
        const after = handleActivationEnd(session, event.actorId, PLATFORM);
        if (after === null) return;
        applyTurn(enqueue, { ...context, live }, after.turn, { ...PLATFORM_ORIGIN, input_id: after.input_id });
      }),
      sayEnded: emit(({ context }) => {
        const { run_id, state, end } = outputOf(context.session);
        return { type: 'ended', run_id, state, reason: end.reason };
      }),
      noteTime: assign(({ event }) => (event.type === 'COMMAND' ? { now: event.context.time } : {})),
    },
  }).createMachine({
    id: 'session',
    context: ({ input: { base, open, spec, inputs = [] } }) => ({
      base,
      inputs,
      session: createSession({
        session_id: open.run_id,
        spec,
        structure_hash: structureHash(spec),
        settings: open.settings,
        agent: open.agent,
        spec_file: open.spec_file,
        idempotency_key: open.idempotency_key,
        created_at: open.time,
      }),
      live: [],
      by: open.by,
      now: open.time,
    }),
    initial: 'opening',
    on: {
      COMMAND: { target: '#session.settling', actions: ['noteTime', 'carryOut'] },
      CHILD_ENDED: { actions: 'noteCheck' },
      'xstate.done.actor.*': { target: '#session.settling', actions: 'noteActivation' },
    },
    states: {
      opening: { entry: 'begin', always: { target: 'settling' } },
      settling: {
        always: [
          statusTransition('running', 'running'),
          statusTransition('paused', 'paused'),
          statusTransition('failed', 'failed'),
          { target: 'closing' },
        ],
      },
      running: {},
      paused: {},
      failed: {},
      closing: {
        always: [
          { guard: { type: 'over', params: { status: 'completed' } }, target: 'completed' },
          { guard: { type: 'over', params: { status: 'ended' } }, target: 'ended' },
        ],
      },
      completed: { type: 'final', entry: 'sayEnded' },
      ended: { type: 'final', entry: 'sayEnded' },
    },
    output: ({ context }): SessionMachineOutput => outputOf(context.session),
  });
/** The machine that `createSessionMachine` returns. */
export interface SessionMachine extends ReturnType<typeof createSessionMachine> {}

const PLATFORM_ORIGIN = { input_id: null, time: '', overlay: null, requester: PLATFORM } as const;

/** The first activation, and the reply to the client that started the session. */
function firstTurn(session: SessionState, by: OpenSessionInput['by']): Turn {
  const turn = new TurnBuilder({ ...session, state_version: 0 }, by);
  const { spec, structure_hash, settings } = session;
  turn.recordEvent(
    'start',
    { run_id: activationId(session) },
    {
      spec_id: spec.id,
      structure_hash,
      posture: settings.posture,
      gate_policy: settings.gate_policy,
    },
  );
  turn.addOrder({ kind: 'open_activation', run_id: activationId(session) });
  return turn.build(sessionAnswer(turn.state));
}

/** The output as a run has it: a session ended by a person counts as cancelled. */
function outputOf(session: SessionState): SessionMachineOutput {
  const completed = session.status === 'completed';
  return {
    run_id: session.session_id,
    state: completed ? 'completed' : 'cancelled',
    end: completed ? COMPLETED_END : cancellationEnd('ended'),
    done: null,
    spent: null,
    session,
  };
}

/** The id of the input that opens a session; its reply is the reply to the start. */
export const openInputId = ({ session_id }: Pick<SessionState, 'session_id'>): string => `${session_id}/open`;
