// One step: nine phases in strict order (S0-12), for one proposal of one agent run. It is no run itself.
//
//   RECEIVE ▸ PARSE ▸ VALIDATE_SCHEMA ▸ VALIDATE_ACTION ▸ VALIDATE_ARGS ▸ AUTHORIZE ▸ EXECUTE ▸ RECORD ▸ RESPOND
//      └────────┴───────────┴── the first refusal ──┴────────────┴──────────────────────────────▲
//
//   AUTHORIZE: judging ──▶ gathering ── FACTS ──▶ deciding ── STARTED ──▶ EXECUTE
//              (lane)       (what is there)        (a mediated run is created with the verdict)
//
// Invariants:
//   S1. A phase that refuses sets `fault` and `phase_failed_at`; the next state is RECORD.
//   S2. EXECUTE is entered at most once: by an action without privilege, or by STARTED, which only a mediated run
//       that was allowed (and whose children were) says.
//   S3. Every path passes RECORD once and RESPOND once: one trace and one reply for each proposal (S0-04, S2-20).
//   S4. No state reads `reasoning`; the draft does not hold it.

import { assign, emit, enqueueActions, sendTo, setup } from 'xstate';
import { findAction } from '../src/contract/actions.js';
import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import type { SandboxFacts } from '../src/contract/effect.js';
import type { SeenProposal } from '../src/contract/entry.js';
import type { JsonObject } from '../src/contract/json.js';
import type { Exposure } from '../src/contract/response.js';
import type { RunContext } from '../src/contract/run-context.js';
import type { Policy } from '../src/policy/policy.js';
import type { Verdict } from '../src/policy/verdict.js';
import {
  decideByFacts,
  denialOf,
  failureOf,
  gatherFor,
  judgeLane,
  mediatedContext,
  mediatedRequest,
  WAITING,
  type Authorization,
} from '../src/step/authorization.js';
import { advance, type CheckPhase, type Draft } from '../src/step/draft.js';
import { respondTo, resultWithoutEffect, traceOf } from '../src/step/conclude.js';
import { NOBODY } from '../src/step/validate-schema.js';
import type { Emission } from './emission.js';
import type { MediatedLogic } from './mediated.js';
import { isDone, type DoneEvent } from './run.js';

export interface StepInput {
  /** The agent run that proposes. */
  readonly agent: RunContext;
  readonly exposure: Exposure;
  readonly input_id: string;
  readonly step_index: number;
  readonly received_at: string;
  readonly payload: ArtifactRef;
  readonly raw: Uint8Array;
  readonly seen: SeenProposal | null;
  readonly recorded_response: string | null;
  /** The id of the mediated run, should there be one. */
  readonly mediated_run_id: string;
}

export interface StepMemory extends Draft, Omit<StepInput, 'raw'> {
  readonly authorization: Authorization;
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  /** Whether the mediated run was created: its ordinal is used up then. */
  readonly mediated: boolean;
  readonly response: string | null;
}

export type StepEvent =
  | { readonly type: 'FACTS'; readonly facts: SandboxFacts }
  | { readonly type: 'STARTED' }
  | { readonly type: 'CANCEL'; readonly reason: string }
  | DoneEvent;

/** What a step tells its agent run when it is over. */
export interface StepOutput {
  readonly step: true;
  readonly mediated: boolean;
  /** Refused by AUTHORIZE: these denials are counted (D5). */
  readonly denied: boolean;
  /** A FINISH that succeeded ends the agent run. */
  readonly finished: boolean;
}

const check = (phase: CheckPhase) => ({ type: 'check', params: { phase } }) as const;
const onward = <const T extends string>(target: T) => [{ guard: 'refused', target: 'RECORD' }, { target }] as const;

/** The step machine, judged by `policy`. `tool_gateway` is the machine of the mediated runs that it spawns. */
export const createStepMachine = (policy: Policy, tool_gateway: MediatedLogic) =>
  setup({
    types: {} as {
      context: StepMemory;
      events: StepEvent;
      input: StepInput;
      output: StepOutput;
      emitted: Emission;
      children: Record<string, 'tool_gateway'>;
    },
    actors: { tool_gateway },
    guards: {
      refused: ({ context }) => context.fault !== null,
      repeated: ({ context }) => context.replay_of !== null,
      unprivileged: ({ context }) => findAction(context.action ?? '')?.tool === null,
      judged: ({ context }) => context.authorization.verdict !== null,
    },
    actions: {
      check: assign(({ context }, { phase }: { phase: CheckPhase }) => advance(phase, context, policy)),
      sayMark: emit(({ context }) => markOf(context)),
      judge: assign(({ context }) => ({ authorization: judgeLane(context, policy) })),
      gather: emit(({ context }) => ({
        type: 'command',
        command: { kind: 'gather', run_id: context.agent.run_id, request: gatherFor(context, policy) },
      })),
      weigh: assign(({ context, event }) =>
        event.type === 'FACTS' ? { authorization: decideByFacts(context, event.facts, policy) } : {},
      ),
      giveUp: assign(({ context }) => ({ authorization: { ...context.authorization, verdict: NOT_NOW } })),
      mediate: enqueueActions(({ context, enqueue }) => {
        const run = mediatedContext(context, policy);
        enqueue.spawnChild('tool_gateway', {
          id: run.run_id,
          input: { run, request: mediatedRequest(context, policy) },
        });
        enqueue.assign({ mediated: true });
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict: context.authorization.verdict ?? NOT_NOW });
      }),
      cancelChild: sendTo(
        ({ context }) => context.mediated_run_id,
        ({ event }) => event,
      ),
      noteDenial: assign(({ event }) =>
        isDone(event) && event.output.done?.denied_by
          ? { fault: denialOf(event.output.done.denied_by), phase_failed_at: 'AUTHORIZE' as const }
          : { fault: denialOf(NOT_NOW), phase_failed_at: 'AUTHORIZE' as const },
      ),
      noteResult: assign(({ event }) => (isDone(event) ? resultOf(event) : {})),
      noteUnprivileged: assign(({ context }) => ({ result: resultWithoutEffect(context) })),
      compose: assign(({ context }) => ({ response: respondTo(context) })),
      sayTrace: emit(({ context }) => ({ type: 'step_trace', body: traceOf(context) })),
      sayReply: emit(({ context }) => ({
        type: 'reply',
        reply: { run_id: context.agent.run_id, input_id: context.input_id, response: context.response ?? '' },
      })),
    },
  }).createMachine({
    id: 'step',
    context: ({ input }) => newMemory(input),
    initial: 'RECEIVE',
    states: {
      RECEIVE: { entry: check('RECEIVE'), always: onward('PARSE') },
      PARSE: { entry: check('PARSE'), always: onward('VALIDATE_SCHEMA') },
      VALIDATE_SCHEMA: {
        entry: check('VALIDATE_SCHEMA'),
        always: [
          { guard: 'refused', target: 'RECORD' },
          { guard: 'repeated', target: 'RECORD' },
          { target: 'VALIDATE_ACTION', actions: 'sayMark' },
        ],
      },
      VALIDATE_ACTION: { entry: check('VALIDATE_ACTION'), always: onward('VALIDATE_ARGS') },
      VALIDATE_ARGS: { entry: check('VALIDATE_ARGS'), always: onward('AUTHORIZE') },
      AUTHORIZE: {
        initial: 'judging',
        states: {
          judging: {
            entry: 'judge',
            always: [
              { guard: 'unprivileged', target: '#step.EXECUTE' },
              { guard: 'judged', target: 'deciding' },
              { target: 'gathering' },
            ],
          },
          gathering: {
            entry: 'gather',
            on: {
              FACTS: { target: 'deciding', actions: 'weigh' },
              CANCEL: { target: 'deciding', actions: 'giveUp' },
            },
          },
          deciding: {
            entry: 'mediate',
            on: {
              STARTED: '#step.EXECUTE',
              'xstate.done.actor.*': { target: '#step.RECORD', actions: 'noteDenial' },
            },
          },
        },
      },
      EXECUTE: {
        always: { guard: 'unprivileged', target: 'RECORD', actions: 'noteUnprivileged' },
        on: {
          'xstate.done.actor.*': { target: 'RECORD', actions: 'noteResult' },
          CANCEL: { actions: 'cancelChild' },
        },
      },
      RECORD: { entry: ['compose', 'sayTrace'], always: 'RESPOND' },
      RESPOND: { type: 'final', entry: 'sayReply' },
    },
    output: ({ context }) => ({
      step: true,
      mediated: context.mediated,
      denied: context.phase_failed_at === 'AUTHORIZE',
      finished: context.action === 'FINISH' && context.fault === null && context.replay_of === null,
    }),
  });
export type StepMachine = ReturnType<typeof createStepMachine>;

/** Written out: a step begins a thousand times a second, and spreading thirty members costs more than a phase. */
const newMemory = (input: StepInput): StepMemory => ({
  raw: input.raw,
  text: null,
  value: null,
  payload_sha256: input.payload.hash_sha256,
  seen: input.seen,
  identity: NOBODY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
  agent: input.agent,
  exposure: input.exposure,
  input_id: input.input_id,
  step_index: input.step_index,
  received_at: input.received_at,
  payload: input.payload,
  recorded_response: input.recorded_response,
  mediated_run_id: input.mediated_run_id,
  authorization: WAITING,
  result: null,
  result_ref: null,
  mediated: false,
  response: null,
});

const NOT_NOW: Verdict = { decision: 'deny', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' };

function resultOf({ output }: DoneEvent): Partial<StepMemory> {
  const done = output.done;
  if (done?.result) return { result: done.result, result_ref: done.result_ref };
  return { fault: failureOf(done?.cause ?? 'INTERNAL'), phase_failed_at: 'EXECUTE' };
}

const markOf = ({ agent, identity, step_index, payload }: StepMemory): Emission => ({
  type: 'mark',
  mark: {
    root_run_id: agent.root_run_id,
    proposal_id: (identity.proposal_id ?? '').toLowerCase(),
    run_id: agent.run_id,
    step_index,
    payload_sha256: payload.hash_sha256,
    seq: 0,
  },
});
