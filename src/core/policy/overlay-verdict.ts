// The decision of the emergency overlay (D1). It can only restrict: it returns a denial, or nothing.

import {
  OVERLAY_MATCHERS,
  type ComparedRule,
  type OverlayFact,
  type OverlayMatcher,
  type OverlaySubject,
} from '../contract/policy/overlay.js';
import { compareNames } from '../contract/person.js';
import type { Verdict } from './verdict.js';

/** The rule id of every denial while the overlay cannot be trusted. */
export const OVERLAY_UNUSABLE = 'overlay.unusable';

/**
 * The policy's verdict after the overlay. A denial stays unchanged; an allow stays, or becomes the overlay's denial.
 */
export function withOverlay(verdict: Verdict, overlay: OverlayFact | null, subject: OverlaySubject): Verdict {
  if (verdict.decision !== 'allow') return verdict;
  return overlayVerdict(overlay, subject) ?? verdict;
}

/**
 * The overlay's denial of a request, or null if it has none. The first matching rule gives the rule id,
 * `overlay.<rule_id>`.
 */
export function overlayVerdict(overlay: OverlayFact | null, subject: OverlaySubject): Verdict | null {
  if (overlay === null) return null;
  if (overlay.epoch === null) return denial(OVERLAY_UNUSABLE);
  const rule = overlay.rules.find((candidate) => isMatchingRule(candidate, subject));
  return rule === undefined ? null : denial(`overlay.${rule.rule_id}`);
}

/** The schema rejects a rule without a matcher. If one occurs anyway, it matches: fail closed. */
const isMatchingRule = (rule: ComparedRule, subject: OverlaySubject): boolean =>
  OVERLAY_MATCHERS.every((name) => {
    const wanted = rule[name];
    if (wanted === undefined || isMatchingField(name, wanted, subject[name])) return true;
    return name === 'actor_id' && isSamePerson(rule, subject);
  });

/** C87: another spelling of the name, a name that looks like it, or one that cannot be compared. */
const isSamePerson = ({ person }: ComparedRule, subject: OverlaySubject): boolean =>
  person !== undefined && subject.person !== undefined && compareNames(person, subject.person) !== 'other';

/** D11: the ids of runs below a run begin with its id and a dot. */
const isMatchingField = (name: OverlayMatcher, wanted: string, given: string | null): boolean =>
  given === wanted || (name === 'run_id' && given !== null && given.startsWith(`${wanted}.`));

const denial = (rule_id: string): Verdict => ({ decision: 'deny', rule_id, cause: 'OVERLAY' });
