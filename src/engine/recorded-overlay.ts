// The emergency overlay as inputs record it: its rules decide, and the words of the operator stay in its file (C90).

import { hashedText } from '../contract/free-text.js';
import type { OverlayFact } from '../contract/overlay.js';

const known = new WeakMap<OverlayFact, OverlayFact>();

/** The same object for the same fact: its text is made once. */
export function recordedOverlay(fact: OverlayFact | null): OverlayFact | null {
  if (fact === null || fact.epoch === null) return fact;
  const made = known.get(fact) ?? {
    epoch: fact.epoch,
    rules: fact.rules.map((rule) => ({ ...rule, reason: hashedText(rule.reason) })),
  };
  known.set(fact, made);
  return made;
}
