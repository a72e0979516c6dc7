// Behaviour flags: changes in what the machines, or the functions that they call, decide.
//
// A tree is recorded with the flags that were in force when it was opened. They are in the text of its machine
// definitions, an artifact of its `open` whose hash is one of its pins. Every later fold of the tree reads them there.
// A tree without flags behaves as it did before the first flag existed.
//
// To change what a machine does in a case that may already be in a ledger:
//   1. Add a flag below, with the next number. The first has the number 0. Numbers are never reused, and no flag is
//      ever removed. Code uses a constant in place of the number.
//   2. Keep the old behaviour, and ask the policy that machines and functions receive: `policy.flags.has(N)`.
//   3. Add a golden history with the flag. New trees have it, and the other histories prove that old trees decide as
//      they did.

import type { Policy } from '../src/core/policy/policy.js';

/** One change of behaviour. */
export interface Flag {
  readonly number: number;
  /** The behaviour with the flag, and the behaviour without it. */
  readonly what: string;
  /** Whether the flag is about trees of this policy. Default: about all trees. */
  readonly isFor?: (policy: Policy) => boolean;
}

/** All flags, in the order of their numbers. New trees are opened with all that concern their policy. */
export const FLAGS: readonly Flag[] = [];

/** The flags in force for one tree. */
export type Flags = ReadonlySet<number>;

/** The flags of a tree that was opened before the first flag existed. */
export const NO_FLAGS: Flags = new Set();

/** The set of the numbers of these flags. */
export const flagsOf = (flags: readonly Flag[]): Flags => new Set(flags.map(({ number }) => number));
