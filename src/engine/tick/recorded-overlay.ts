// The emergency overlay as inputs record it: with its rules, but without the operator's free text, which stays in its
// file (C90).

import { hashText } from '../../contract/free-text.js';
import type { OverlayFact } from '../../contract/policy/overlay.js';

const cachedOverlays = new WeakMap<OverlayFact, OverlayFact>();

/** Returns the same object for the same fact, so that its text is serialized once. */
export function toRecordedOverlay(fact: OverlayFact | null): OverlayFact | null {
  if (fact === null || fact.epoch === null) return fact;
  const recorded = cachedOverlays.get(fact) ?? {
    epoch: fact.epoch,
    rules: fact.rules.map((rule) => ({ ...rule, reason: hashText(rule.reason) })),
  };
  cachedOverlays.set(fact, recorded);
  return recorded;
}
