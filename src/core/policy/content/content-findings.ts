// What a finding in a promoted record means in a lane (S4-73, C92). The finding is a recorded fact of the run's input;
// the pinned policy of the run's lane decides here how it counts.

import type { FindingKind } from '../../contract/policy/content-checks.js';
import { FINDING_KINDS } from '../../contract/policy/content-checks.js';
import type { Lane } from '../../contract/policy/lanes.js';

const PREFIX = 'found:';

/** The flag by which the facts record a finding. */
export const findingFlag = (kind: FindingKind): string => `${PREFIX}${kind}`;

/** The artifact flag that a prohibition uses for a finding. */
const COUNTS_AS: Readonly<Record<FindingKind, string>> = {
  person_name: 'client_identity',
  birth_date: 'client_identity',
  email: 'client_identity',
  phone: 'client_identity',
  account_number: 'client_identity',
  document_number: 'client_identity',
  case_reference: 'client_identity',
  privilege_mark: 'privileged_notes',
};

/** Adds to the recorded flags those that their findings count as in this lane. */
export function withFindings(recorded: readonly string[], lane: Lane | undefined): readonly string[] {
  const permitted = lane?.content_checks?.permits ?? [];
  const counted = FINDING_KINDS.filter((kind) => recorded.includes(findingFlag(kind)) && !permitted.includes(kind)).map(
    (kind) => COUNTS_AS[kind],
  );
  return [...new Set([...recorded, ...counted])];
}
