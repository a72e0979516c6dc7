// Acts of operators on the ledger itself: erasure, archive, restore and key rotation. Each is a `tool_gateway` run that
// a person starts. Policy decides it like every other run; the operator's command executes it and reports the outcome.

import { isJsonObject, type JsonObject } from '../json.js';

/**
 * By action: the name that conditions and approval rules use, and the tool that a lane lists. If no lane lists the
 * tool, role and lane do not limit the act.
 */
export const OPERATOR_ACTS = {
  ERASE_CASE: { subject: 'erasure', tool: 'ledger.erase' },
  ARCHIVE_LEDGER: { subject: 'archive', tool: 'ledger.archive' },
  RESTORE_LEDGER: { subject: 'restore', tool: 'ledger.restore' },
  ROTATE_KEYS: { subject: 'key_rotation', tool: 'ledger.rotate_keys' },
} as const;
export type OperatorAction = keyof typeof OPERATOR_ACTS;

/** What conditions and approval rules call an operator's act. */
export const OPERATOR_SUBJECTS: readonly string[] = Object.values(OPERATOR_ACTS).map(({ subject }) => subject);
/** The tools by which lanes limit operators' acts. */
export const OPERATOR_TOOLS: readonly string[] = Object.values(OPERATOR_ACTS).map(({ tool }) => tool);

export const isOperatorAction = (action: string): action is OperatorAction => Object.hasOwn(OPERATOR_ACTS, action);

/** A case that the act concerns, with the scopes of its run trees: a hold may name a matter instead of a case. */
export interface ConcernedCase {
  readonly case_id: string;
  /** Each different scope once; empty if no run tree of the case can be read. */
  readonly scopes: readonly Readonly<Record<string, string>>[];
}

/** The cases in the arguments of an operator's act; empty for an act on the ledger as a whole. */
export function concernedCases({ cases }: JsonObject): readonly ConcernedCase[] {
  if (!Array.isArray(cases)) return [];
  return cases.flatMap((one) => {
    if (!isJsonObject(one) || typeof one['case_id'] !== 'string' || !Array.isArray(one['scopes'])) return [];
    return [{ case_id: one['case_id'], scopes: one['scopes'].map(textsOf) }];
  });
}

const textsOf = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    isJsonObject(value) ? Object.entries(value).flatMap(([k, v]) => (typeof v === 'string' ? [[k, v]] : [])) : [],
  );
