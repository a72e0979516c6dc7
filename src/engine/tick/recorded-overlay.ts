// The emergency overlay as inputs record it: its rules decide, and the words of the operator stay in its file (C90).

import { hashText } from '../../contract/free-text.js';
import type { OverlayFact } from '../../contract/policy/overlay.js';

const cachedOverlays = new WeakMap<OverlayFact, OverlayFact>();

/** The same object for the same fact: its text is made once. */
export function toRecordedOverlay(fact: OverlayFact | null): OverlayFact | null {
  if (fact === null || fact.epoch === null) return fact;
  const recorded = cachedOverlays.get(fact) ?? {
    epoch: fact.epoch,
    rules: fact.rules.map((rule) => ({ ...rule, reason: hashText(rule.reason) })),
  };
  cachedOverlays.set(fact, recorded);
  return recorded;
}
