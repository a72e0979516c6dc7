// What a finding in a promoted record means to a lane (S4-73, C92). A finding is a recorded fact of the run's input;
// what it counts as is decided here, by the lane that the run is pinned to.

import type { FindingKind } from '../../contract/policy/content-checks.js';
import { FINDING_KINDS } from '../../contract/policy/content-checks.js';
import type { Lane } from '../../contract/policy/lanes.js';

const PREFIX = 'found:';

/** The finding as it is recorded among the facts. */
export const findingFlag = (kind: FindingKind): string => `${PREFIX}${kind}`;

/** By which artifact flag a prohibition knows the finding. */
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

/** The recorded flags, and what the findings among them count as in this lane. */
export function withFindings(recorded: readonly string[], lane: Lane | undefined): readonly string[] {
  const permitted = lane?.content_checks?.permits ?? [];
  const counted = FINDING_KINDS.filter((kind) => recorded.includes(findingFlag(kind)) && !permitted.includes(kind)).map(
    (kind) => COUNTS_AS[kind],
  );
  return [...new Set([...recorded, ...counted])];
}
