// Formats a condition file. Its meaning stays: the formatted text is read again and compared.

import { type Json, canonicalJson } from '../../core/contract/json.js';
import { PolicyError } from '../../core/errors.js';
import type { PolicyFinding } from '../../core/policy/files/policy-finding.js';
import { formatPolicies } from './cedar.js';
import { readConditionFile, type ConditionFile } from './condition-file.js';

const WIDTH = 100;

/**
 * @returns the formatted text; null if the file has findings
 * @throws PolicyError POLICY_INVALID if the formatter changed what a condition says
 */
export function formatConditions(
  path: string,
  bytes: Uint8Array,
): { readonly text: string | null; readonly findings: readonly PolicyFinding[] } {
  const file = readConditionFile(path, bytes);
  if (file.findings.length > 0) return { text: null, findings: file.findings };
  const given = Buffer.from(bytes).toString('utf8');
  const formatted = file.conditions.length === 0 ? given : formatPolicies(given, WIDTH);
  const text = formatted === null ? given : `${formatted.trimEnd()}\n`;
  if (meaningOf(readConditionFile(path, Buffer.from(text))) !== meaningOf(file)) {
    throw new PolicyError({ code: 'POLICY_INVALID', message: `${path}: formatting would change a condition` });
  }
  return { text, findings: [] };
}

/** The policies of a file as data, without the places. */
const meaningOf = ({ conditions, findings }: ConditionFile): string =>
  canonicalJson([findings.length, ...conditions.map(({ scope }) => scope as unknown as Json)] as Json);
