// The emergency overlay, with the persons that its rules name (C87): the kernel compares them, but has no Unicode
// tables.

import type { ComparedRule, OverlayFact } from '../core/contract/policy/overlay.js';
import type { OverlaySource } from '../engine/ports/policy-sources.js';
import { personOf } from '../names/person-name.js';

/** A name that cannot be compared has no person: no actor can act or vote under it or another spelling of it. */
export function comparedRule(given: ComparedRule): ComparedRule {
  const rule = { ...given };
  delete rule.person;
  const person = rule.actor_id === undefined ? 'empty' : personOf(rule.actor_id);
  return typeof person === 'string' ? rule : { ...rule, person };
}

/** A source of the embedding service. Returns the same object for the same fact of the source. */
export function comparedOverlay(source: OverlaySource): OverlaySource {
  const known = new WeakMap<OverlayFact, OverlayFact>();
  return {
    current: () => {
      const fact = source.current();
      if (fact === null || fact.epoch === null) return fact;
      const made = known.get(fact) ?? { epoch: fact.epoch, rules: fact.rules.map(comparedRule) };
      known.set(fact, made);
      return made;
    },
  };
}
