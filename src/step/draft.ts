// What the phases know of a proposal so far, and the one function that takes it through a checking phase.
//
// Invariants:
//   D1. `raw`, `text` and `value` live only between two phases of one macrostep; every snapshot has them null, so a
//       snapshot is plain JSON and holds no payload.
//   D2. `fault` and `phase_failed_at` are set together, once, by the first phase that refuses (S0-13).
//   D3. `reasoning` is kept as hash and length only: no later phase can read it (S0-67).

import { findAction } from '../contract/actions.js';
import type { SeenProposal } from '../contract/entry.js';
import type { Checked, Fault } from '../contract/fault.js';
import type { Json, JsonObject } from '../contract/json.js';
import type { Phase } from '../contract/phase.js';
import type { Policy } from '../policy/policy.js';
import { parse } from './parse.js';
import { receive } from './receive.js';
import { summarizeArgs } from './record.js';
import type { ArgsSummary } from '../contract/step-trace.js';
import { validateAction } from './validate-action.js';
import { validateArgs } from './validate-args.js';
import { identify, NOBODY, validateSchema, validateUnused, type Identity } from './validate-schema.js';

export const CHECK_PHASES = [
  'RECEIVE',
  'PARSE',
  'VALIDATE_SCHEMA',
  'VALIDATE_ACTION',
  'VALIDATE_ARGS',
] as const satisfies readonly Phase[];
export type CheckPhase = (typeof CHECK_PHASES)[number];

export interface Draft {
  readonly raw: Uint8Array | null;
  readonly text: string | null;
  readonly value: Json;
  readonly payload_sha256: string;
  readonly seen: SeenProposal | null;
  readonly identity: Identity;
  /** The name of the action, once VALIDATE_ACTION has passed. */
  readonly action: string | null;
  /** The arguments, once VALIDATE_ARGS has passed; until then whatever stood there. */
  readonly args: JsonObject | null;
  readonly args_summary: ArgsSummary | null;
  readonly replay_of: number | null;
  readonly fault: Fault | null;
  readonly phase_failed_at: Phase | null;
}

export const newDraft = (raw: Uint8Array, payload_sha256: string, seen: SeenProposal | null): Draft => ({
  raw,
  text: null,
  value: null,
  payload_sha256,
  seen,
  identity: NOBODY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
});

/** Takes the draft through one phase. @returns what the phase learnt, or its refusal; never throws for a payload */
export function advance(phase: CheckPhase, draft: Draft, policy: Policy): Partial<Draft> {
  switch (phase) {
    case 'RECEIVE':
      return settle(phase, receive(draft.raw ?? new Uint8Array(), policy), { raw: null }, (text) => ({ text }));
    case 'PARSE':
      return settle(phase, parse(draft.text ?? '', policy), { text: null }, (value) => ({ value }));
    case 'VALIDATE_SCHEMA':
      return checkSchema(draft, policy);
    case 'VALIDATE_ACTION':
      return settle(phase, validateAction(draft.action ?? '', policy), {}, ({ name }) => ({ action: name }));
    case 'VALIDATE_ARGS':
      return checkArgs(draft, policy);
  }
}

function checkSchema(draft: Draft, policy: Policy): Partial<Draft> {
  const { value, seen, payload_sha256 } = draft;
  const identity = identify(value, policy);
  const checked = validateSchema(value);
  if (!checked.ok) return settle('VALIDATE_SCHEMA', checked, { value: null, identity }, () => ({}));
  const { args, action } = checked.value;
  // The name is needed by the next phase even where it may not be echoed (C06).
  const known = {
    value: null,
    identity,
    action,
    args,
    args_summary: summarizeArgs(null, args),
  };
  return settle('VALIDATE_SCHEMA', validateUnused(seen, payload_sha256, policy), known, ({ replay_of }) => ({
    replay_of,
  }));
}

function checkArgs(draft: Draft, policy: Policy): Partial<Draft> {
  const definition = findAction(draft.action ?? '');
  if (definition === undefined) return { args: null };
  return settle('VALIDATE_ARGS', validateArgs(definition, draft.args ?? {}, policy), {}, (args) => ({
    args,
    args_summary: summarizeArgs(definition, args),
  }));
}

function settle<T>(
  phase: Phase,
  checked: Checked<T>,
  always: Partial<Draft>,
  learn: (value: T) => Partial<Draft>,
): Partial<Draft> {
  return checked.ok
    ? { ...always, ...learn(checked.value) }
    : { ...always, fault: checked.fault, phase_failed_at: phase };
}
