// Decides by the behaviour flags of a tree which inputs it takes, which are reserved for the session, and which
// configuration its runs start with.

import { configurationOf } from '../../../machines/run-artifacts.js';
import { ONE_AUTHORISATION, OPERATOR_RUNS, RUN_INPUTS } from '../../../machines/flags.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { OpeningInput, RecordedInput } from '../contract/run/entry.js';
import type { Policy } from '../policy/policy.js';
import type { KnownRun } from './tree-snapshot.js';

const START_KINDS: ReadonlySet<string> = new Set(['start_agent', 'start_run']);

/**
 * Whether only the session itself may submit this input to its tree. The session starts the runs of an activation,
 * counts them and waits for them by id. It also ends an activation: to cancel one, pause it (C93).
 */
export function isReservedForSession({ kind }: RecordedInput, run: KnownRun | null, policy: Policy | null): boolean {
  if (START_KINDS.has(kind)) return true;
  return kind === 'cancel' && policy?.flags.has(ONE_AUTHORISATION) === true && run?.context.run_kind !== 'agent';
}

/** Whether the input starts an act of an operator in a tree that does not know such acts (C101). */
export const isUnknownStart = (input: RecordedInput, policy: Policy | null): boolean =>
  input.kind === 'start_run' && input.run_kind === 'tool_gateway' && policy?.flags.has(OPERATOR_RUNS) !== true;

/** The configuration of a tree's runs; empty if the tree does not record it (C91). */
export const configurationFor = (open: OpeningInput, policy: Policy | null): readonly ArtifactRef[] =>
  policy?.flags.has(RUN_INPUTS) === true ? configurationOf(open) : [];
