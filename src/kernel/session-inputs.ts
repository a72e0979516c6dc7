// What a tree asks of its behaviour flags when an input comes: whether it is the session's to decide, and what its runs
// are started with.

import { configurationOf } from '../../machines/run-artifacts.js';
import { ONE_AUTHORISATION, RUN_INPUTS } from '../../machines/flags.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { OpeningInput, RecordedInput } from '../contract/run/entry.js';
import type { Policy } from '../policy/policy.js';
import type { KnownRun } from './tree-snapshot.js';

const START_KINDS: ReadonlySet<string> = new Set(['start_agent', 'start_run']);

/**
 * Of the tree of a session: whether only the session itself may do this. It starts the runs of an activation, counts
 * them, and waits for them by their ids. An activation ends by what it decides: to cancel one is to pause it (C93).
 */
export function isReservedForSession({ kind }: RecordedInput, run: KnownRun | null, policy: Policy | null): boolean {
  if (START_KINDS.has(kind)) return true;
  return kind === 'cancel' && policy?.flags.has(ONE_AUTHORISATION) === true && run?.context.run_kind !== 'agent';
}

/** What the runs of a tree are started with; empty where the tree does not record that (C91). */
export const configurationFor = (open: OpeningInput, policy: Policy | null): readonly ArtifactRef[] =>
  policy?.flags.has(RUN_INPUTS) === true ? configurationOf(open) : [];
