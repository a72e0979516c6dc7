// The result of the phases so far for one proposal, and the functions that run the checking phases.
//
// Invariants:
//   D1. `raw`, `text` and `value` live only between two phases of one macrostep; every snapshot has them null, so a
//       snapshot is plain JSON and holds no payload.
//   D2. `fault` and `phase_failed_at` are set together, once, by the first phase that rejects (S0-13).
//   D3. `reasoning` is stored as hash and length only: no later phase can read it (S0-67).

import type { SeenProposal } from '../contract/run/entry.js';
import type { Fault } from '../contract/fault.js';
import type { Json, JsonObject } from '../contract/json.js';
import { PHASES, type Phase } from '../contract/run/phase.js';
import type { CheckDescription } from '../policy/ordered-check.js';
import type { Policy } from '../policy/policy.js';
import { parse } from './parse.js';
import { receive, TOO_LARGE } from './receive.js';
import { explainArgumentFault, explainProposalFault } from './explanation/explain-fault.js';
import { summarizeArgs } from './summarize-args.js';
import { argumentNameRecorder } from './requests/recorded-names.js';
import type { ArgsSummary } from '../contract/run/step-trace.js';
import { validateAction } from './validate-action.js';
import { validateArgs } from './validate-args.js';
import { identify, UNKNOWN_IDENTITY, validateSchema, validateProposalId, type Identity } from './validate-schema.js';

export const CHECK_PHASES = [
  'RECEIVE',
  'PARSE',
  'VALIDATE_SCHEMA',
  'VALIDATE_ACTION',
  'VALIDATE_ARGS',
] as const satisfies readonly Phase[];
export type CheckPhase = (typeof CHECK_PHASES)[number];

export interface StepDraft {
  /** Null at RECEIVE for a payload over the limit, whose bytes are not stored (C80); null in every later phase. */
  readonly raw: Uint8Array | null;
  readonly text: string | null;
  readonly value: Json;
  readonly payload_sha256: string;
  readonly seen: SeenProposal | null;
  readonly identity: Identity;
  /** The name of the action, once VALIDATE_ACTION has passed. */
  readonly action: string | null;
  /** The arguments, once VALIDATE_ARGS has passed; until then the unchecked value. */
  readonly args: JsonObject | null;
  readonly args_summary: ArgsSummary | null;
  readonly replay_of: number | null;
  readonly fault: Fault | null;
  readonly phase_failed_at: Phase | null;
}

export const newStepDraft = (raw: Uint8Array | null, payload_sha256: string, seen: SeenProposal | null): StepDraft => ({
  raw,
  text: null,
  value: null,
  payload_sha256,
  seen,
  identity: UNKNOWN_IDENTITY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
});

/** The claims of the checking phases in order, as `policy explain` prints them. */
export const VALIDATION_CHECKS: readonly (CheckDescription & { readonly phase: CheckPhase })[] = [
  { phase: 'RECEIVE', claim: 'the payload is UTF-8 text within its limits', rules: ['payload.*'] },
  { phase: 'PARSE', claim: 'the payload is JSON', rules: ['json.*'] },
  { phase: 'VALIDATE_SCHEMA', claim: 'the payload is a proposal', rules: ['schema.*'] },
  { phase: 'VALIDATE_SCHEMA', claim: 'the proposal id is new', rules: ['proposal.*'] },
  { phase: 'VALIDATE_ACTION', claim: 'the action is listed', rules: ['action.*'] },
  { phase: 'VALIDATE_ARGS', claim: 'the arguments match the schema of the action', rules: ['args.*', 'path.*'] },
];

/**
 * Runs checking phases in order, from `draft`, until one rejects the proposal or recognizes it as a repeated one. The
 * step machine runs the same phases one state at a time; recovery and `policy simulate` use this function.
 */
export function runCheckPhases<Draft extends StepDraft>(
  draft: Draft,
  policy: Policy,
  phases: readonly CheckPhase[] = CHECK_PHASES,
): Draft {
  const checked = { ...draft };
  for (const phase of phases) {
    Object.assign(checked, runCheckPhase(phase, checked, policy));
    if (checked.fault !== null || checked.replay_of !== null) break;
  }
  return checked;
}

/** The phases that find out who proposes what; they need neither an action's definition nor a verdict. */
export const IDENTITY_PHASES = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA'] as const satisfies readonly CheckPhase[];

/** The phase that follows a checking phase that passes (S0-12). */
// Stryker disable next-line StringLiteral: no checking phase is the last phase
export const phaseAfter = (phase: CheckPhase): Phase => PHASES[PHASES.indexOf(phase) + 1] ?? 'RECORD';

/** Whether a checking phase has rejected it. */
export const isInvalid = ({ phase_failed_at }: Pick<StepDraft, 'phase_failed_at'>): boolean =>
  (CHECK_PHASES as readonly (Phase | null)[]).includes(phase_failed_at);

/** Runs one phase. @returns the changed members, or the rejection; never throws for a payload */
export function runCheckPhase(phase: CheckPhase, draft: StepDraft, policy: Policy): Partial<StepDraft> {
  switch (phase) {
    case 'RECEIVE': {
      const received = draft.raw === null ? TOO_LARGE : receive(draft.raw, policy);
      return received.ok
        ? { raw: null, text: received.value }
        : { raw: null, fault: received.fault, phase_failed_at: phase };
    }
    case 'PARSE': {
      // Stryker disable next-line StringLiteral: neither text is JSON
      const parsed = parse(draft.text ?? '', policy);
      return parsed.ok
        ? { text: null, value: parsed.value }
        : { text: null, fault: parsed.fault, phase_failed_at: phase };
    }
    case 'VALIDATE_SCHEMA':
      return checkSchema(draft, policy);
    case 'VALIDATE_ACTION': {
      // Stryker disable next-line StringLiteral: neither name is an action
      const checked = validateAction(draft.action ?? '', policy);
      return checked.ok ? { action: checked.value.name } : { fault: checked.fault, phase_failed_at: phase };
    }
    case 'VALIDATE_ARGS':
      return checkArgs(draft, policy);
  }
}

function checkSchema({ value, seen, payload_sha256 }: StepDraft, policy: Policy): Partial<StepDraft> {
  const identity = identify(value, policy);
  const checked = validateSchema(value);
  if (!checked.ok) {
    const fault = explainProposalFault(checked.fault, value);
    return { value: null, identity, fault, phase_failed_at: 'VALIDATE_SCHEMA' };
  }
  // The next phase needs the name even if the response must not echo it (C06).
  const { args, action } = checked.value;
  const args_summary = summarizeArgs(null, args, argumentNameRecorder(action, policy));
  const unused = validateProposalId(seen, payload_sha256, policy);
  return unused.ok
    ? { value: null, identity, action, args, args_summary, replay_of: unused.value.replay_of }
    : { value: null, identity, action, args, args_summary, fault: unused.fault, phase_failed_at: 'VALIDATE_SCHEMA' };
}

function checkArgs(draft: StepDraft, policy: Policy): Partial<StepDraft> {
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = policy.catalogue.action(draft.action ?? '');
  if (definition === undefined) return { args: null };
  const args = draft.args ?? {};
  const checked = validateArgs(definition, args, policy);
  if (checked.ok) return { args: checked.value, args_summary: summarizeArgs(definition, checked.value) };
  const fault = explainArgumentFault(checked.fault, definition, args, policy);
  return { fault, phase_failed_at: 'VALIDATE_ARGS' };
}
