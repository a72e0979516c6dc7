import type { OpenInput, OpeningInput, RunCreated } from '../core/contract/run/entry.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import { TAXONOMY_FIELDS, type TaxonomyVersions } from '../core/contract/shapes.js';
import { mapOptional } from '../core/contract/policy/pins.js';
import { policyVersions } from '../core/policy/files/policy-versions.js';

/** The orchestrator acts as the platform: it governs no lane and has the role without lanes. */
const PLATFORM_ACTOR = { actor_type: 'system', actor_id: 'turnpike' } as const;
const PLATFORM_ROLE = 'SYSTEM';

/** The context of a tree's root run; every run below inherits from it. */
export const rootContext = (open: OpeningInput): RunContext => ({
  run_id: open.run_id,
  run_kind: 'orchestrator',
  root_run_id: open.run_id,
  parent_run_id: null,
  correlation_id: open.correlation_id,
  contract_version: 'v1',
  policy_versions: policyVersions(verifiedPins(open.policies), open.machines.hash_sha256),
  taxonomy_versions: taxonomyOf(open),
  case_id: open.case_id,
  actor: PLATFORM_ACTOR,
  role_id: PLATFORM_ROLE,
  lane_id: null,
  scope: open.scope,
});

/** S4-30: a scope that names a taxonomy version pins the tree to that version. */
function taxonomyOf({ taxonomy_versions, scope }: OpeningInput): TaxonomyVersions | null {
  const scopeVersions = Object.entries(TAXONOMY_FIELDS).flatMap(([field, taxonomy]) => {
    const version = Object.hasOwn(scope, field) ? scope[field] : undefined;
    return version === undefined || version.length > VERSION_CHARS_MAX ? [] : [[taxonomy, version] as const];
  });
  return scopeVersions.length === 0
    ? taxonomy_versions
    : { ...Object.fromEntries(scopeVersions), ...taxonomy_versions };
}
const VERSION_CHARS_MAX = 120;

/** The run context from a run's `run_created` entry. */
export const contextOf = (created: Omit<RunCreated, 'created_at_utc'>): RunContext => ({
  run_id: created.run_id,
  run_kind: created.run_kind,
  root_run_id: created.root_run_id,
  parent_run_id: created.parent_run_id,
  correlation_id: created.correlation_id,
  contract_version: created.contract_version,
  policy_versions: created.policy_versions,
  taxonomy_versions: created.taxonomy_versions,
  case_id: created.case_id,
  actor: created.actor,
  role_id: created.role_id,
  lane_id: created.lane_id,
  scope: created.scope,
});

type PinnedFile = OpenInput['policies']['lanes'];

/** Removes a pin that does not match the bytes of the tree's policy (C46). */
const verifiedPins = ({ lanes, roles, actions, ...optional }: OpenInput['policies']): OpenInput['policies'] => ({
  lanes: verifyPin(lanes),
  roles: verifyPin(roles),
  actions: verifyPin(actions),
  ...mapOptional(optional, verifyPin),
});

const verifyPin = (pin: PinnedFile): PinnedFile =>
  'problem' in pin || pin.sha256 === pin.artifact.hash_sha256 ? pin : { problem: 'stale', artifact: pin.artifact };
