// All invariants of a tree, by name.

import { approvals } from './check-approvals.js';
import { budgets } from './check-budgets.js';
import { effects } from './check-effects.js';
import { events } from './check-events.js';
import { inheritance } from './check-inheritance.js';
import { fold, oracle, snapshot } from './check-kernel.js';
import { labels } from './check-labels.js';
import { lifecycle } from './check-lifecycle.js';
import { overlay } from './check-overlay.js';
import type { Played } from './play.js';
import { storyOf, type Faults, type Story, type TurnRecord } from './story.js';

export const CHECKS = {
  lifecycle,
  inheritance,
  budgets,
  events,
  approvals,
  labels,
  overlay,
  effects,
} as const satisfies Record<string, (story: Story) => Faults>;
export type CheckName = keyof typeof CHECKS;

/** The violations of a ledger, by the check that found them. */
export function faultsOf(played: Played, turns?: readonly TurnRecord[]): readonly string[] {
  const story = storyOf(played, turns);
  return Object.entries(CHECKS).flatMap(([name, check]) => check(story).map((fault) => `${name}: ${fault}`));
}

/** The same, and that the kernel decides the same again. XState runs too for one tree in a number. */
export function allFaultsOf(played: Played, oracleToo: boolean): readonly string[] {
  const at = played.inputs.length >> 1;
  return [...faultsOf(played), ...fold(played), ...snapshot(played, at), ...(oracleToo ? oracle(played) : [])];
}
