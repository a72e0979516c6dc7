// The shipped policy without one of its grants or limits.

import { parseDocument } from 'yaml';
import type { PolicyFile } from '../../../src/core/contract/policy/pins.js';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { filesOf, lint, NAMES, shipped } from './edited-policy.js';

/** Grants and limits whose loss allows nothing more, and why. */
export const HARMLESS: readonly (readonly [RegExp, string])[] = [
  [/^lanes \/lanes\/\d+\/allowed_actions\/(?:tools|writes|reads)(?:\/\d+)?$/, 'what is not listed is denied'],
  [/^lanes \/lanes\/\d+\/allowed_callers\/roles(?:\/\d+)?$/, 'who is not named may not use the lane'],
  [/^lanes \/lanes\/\d+$/, 'a lane that is not there lets nobody do anything'],
  [/^lanes \/lanes\/1\/scope\/prohibits\/2$/, 'the lane of session checks lists no table that it could write'],
  [/^roles \/roles\/\d+(?:\/privileges\/lanes\/\d+)?$/, 'a role without a lane may do nothing'],
  [/^actions \/actions\/\d+$/, 'an action that is not listed is denied'],
  [/^actions \/actions\/\d+\/extensions\/\w+\/\d+$/, 'an ending that is not listed is denied'],
  [/^actions \/knobs\/checkpoints$/, 'the default is the stricter one'],
];

export interface PolicyCut {
  readonly name: PolicyFile;
  readonly pointer: string;
  readonly text: () => string;
}

export const allCuts = (): readonly PolicyCut[] =>
  NAMES.flatMap((name) => cutsOf(shipped()[name]).map((cut) => ({ name, ...cut })));

/**
 * Whether neither the check nor the linter reports the cut, and no listed reason explains why it allows nothing more.
 */
export function isSilent({ name, pointer, text }: PolicyCut): boolean {
  if (HARMLESS.some(([pattern]) => pattern.test(`${name} ${pointer}`))) return false;
  const texts = { ...shipped(), [name]: text() };
  return checkPolicy(filesOf(texts)).findings.length + lint(texts).length === 0;
}

/** A file without one key or item, for each of them that grants or limits. */
function cutsOf(text: string): readonly { readonly pointer: string; readonly text: () => string }[] {
  const names = /^(?:version|contract_version|last_updated|purpose|description|lane_id|role_id|action)$/;
  const cuts: { pointer: string; text: () => string }[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      if (!Array.isArray(value) && names.test(key)) continue;
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      const without = (): string => {
        const document = parseDocument(text);
        document.deleteIn(at);
        return document.toString();
      };
      cuts.push({ pointer: `/${at.join('/')}`, text: without });
      visit((value as Record<string, unknown>)[key], at);
    }
  };
  visit(parseDocument(text).toJS(), []);
  return cuts;
}
