// The shipped policy as text, edited, and the linter's findings in it.

import type { PolicyFile } from '../../../src/core/contract/policy/pins.js';
import type { LintMessage } from '../../../src/home/policy/policy-linter.js';
import { lintPolicy } from '../../../src/features/policy-lint/lint-policy.js';
import { shippedBytes } from '../../fixtures/shipped-policy.js';
import type { Careless, Edit } from './careless-policies.js';
import '../../fixtures/call-rules.js';
import '../../fixtures/decision-points.js';

export type Texts = Readonly<Record<PolicyFile, string>>;
export const NAMES = ['lanes', 'roles', 'actions'] as const;

export function shipped(actions?: string): Texts {
  const bytes = shippedBytes(actions);
  return Object.fromEntries(NAMES.map((name) => [name, Buffer.from(bytes[name]).toString('utf8')])) as unknown as Texts;
}
export const filesOf = (texts: Texts) => {
  const file = (name: PolicyFile) => ({ path: `${name}.yaml`, bytes: Buffer.from(texts[name]) });
  return { lanes: file('lanes'), roles: file('roles'), actions: file('actions') };
};
export const lint = (texts: Texts): readonly LintMessage[] => lintPolicy(filesOf(texts));

const placeOf = (text: string, where: string | undefined): number => {
  const place = where === undefined ? 0 : text.indexOf(where.startsWith('action:') ? where : `_id: ${where}`);
  if (place < 0) throw new Error(`there is no ${where ?? ''}`);
  return place;
};
export function edited(texts: Texts, { file, in: where, from, to }: Edit): Texts {
  const text = texts[file];
  const at = text.indexOf(from, placeOf(text, where));
  if (at < 0) throw new Error(`${file} has no ${from}`);
  return { ...texts, [file]: `${text.slice(0, at)}${to}${text.slice(at + from.length)}` };
}
/** The line of the expected finding. */
export function lineOf(texts: Texts, { file, in: where, at }: Careless['finds']): number {
  const text = texts[file];
  const index = text.indexOf(at, placeOf(text, where));
  if (index < 0) throw new Error(`${file} has no ${at}`);
  return text.slice(0, index).split('\n').length;
}
