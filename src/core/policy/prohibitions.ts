// C56: a prohibition is a predicate of the platform over facts. An agent cannot declare these facts.

import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { PrivilegedRequest } from './privileged-request.js';

/** The input of a prohibition. */
export interface ProhibitionFacts {
  readonly run: RunContext;
  readonly lane: Lane;
  readonly request: PrivilegedRequest;
}

/** Text inside a record, without a reference to an artifact. It can contain anything, so it has every marking. */
export const EMBEDDED_TEXT = 'embedded_text';

// Artifact kinds that contain the original text of a case, or text that an agent wrote from it without review.
const RAW_TEXT = [
  'raw_case_text',
  'raw_payload',
  'raw_payload_prefix',
  'result',
  'file_content',
  'response',
  'explanation',
  'transcript',
  EMBEDDED_TEXT,
];
const IDENTITY = ['client_identity', 'contains_pii', 'contains_phi', EMBEDDED_TEXT];
const PRIVILEGED = ['privileged_notes', 'interview_notes', 'contains_privileged', EMBEDDED_TEXT];
const BUNDLE_KIND = 'export_bundle';

const hasAnyFlag = (flags: readonly string[], wanted: readonly string[]): boolean =>
  flags.some((flag) => wanted.includes(flag));

const PROHIBITIONS = {
  cross_case_lookup: ({ run, request }) => isOtherCaseTarget(run, request),
  external_export: ({ request }) => request.destination === 'outside',
  shared_knowledge_write: ({ run, request }) => request.plane === 'shared' && !isPromotion(run, request),
  raw_case_text: ({ request }) => hasAnyFlag(request.artifact_flags, RAW_TEXT),
  client_identity: ({ request }) => hasAnyFlag(request.artifact_flags, IDENTITY),
  privileged_notes: ({ request }) => hasAnyFlag(request.artifact_flags, PRIVILEGED),
  raw_external_destination: ({ request: { destination, artifact_flags } }) =>
    destination === 'outside' && (!artifact_flags.includes(BUNDLE_KIND) || hasAnyFlag(artifact_flags, RAW_TEXT)),
  unaudited_delivery: ({ run, lane, request }) =>
    request.destination === 'outside' && (run.run_kind !== 'export' || !lane.audit.required),
} as const satisfies Record<string, (facts: ProhibitionFacts) => boolean>;
export type Prohibition = keyof typeof PROHIBITIONS;
export const PROHIBITION_NAMES = Object.keys(PROHIBITIONS) as readonly Prohibition[];

/** Whether the platform defines a prohibition of this name. */
export const isProhibition = (name: string): name is Prohibition => Object.hasOwn(PROHIBITIONS, name);

/** Whether the request violates the prohibition. */
export const isViolated = (name: Prohibition, facts: ProhibitionFacts): boolean => PROHIBITIONS[name](facts);

/** Whether the run is a promotion run, or the db_write run that executes its write. */
export const isPromotion = ({ run_kind }: RunContext, { promotes }: PrivilegedRequest): boolean =>
  run_kind === 'promotion' || (run_kind === 'db_write' && promotes);

/** S4-84: whether the target belongs to a case that is not the run's. A target without a case belongs to no case. */
export const isOtherCaseTarget = (run: RunContext, { target_case_id }: PrivilegedRequest): boolean =>
  target_case_id !== null && target_case_id !== run.case_id;

/** The kinds and confidentiality flags of the artifacts that a request transfers, each once. */
export const artifactFlags = (refs: readonly ArtifactRef[]): readonly string[] => [
  ...new Set(
    refs.flatMap(({ artifact_kind, confidentiality = {} }) => [
      artifact_kind,
      ...Object.entries(confidentiality).flatMap(([flag, value]) => (value === true ? [flag] : [])),
    ]),
  ),
];
