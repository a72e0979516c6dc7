// Opens trees on an engine, without the runtime around it.

import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import { mapOptional } from '../../src/core/contract/policy/pins.js';
import type { NewInput, TreeEngine } from '../../src/engine/tree-engine.js';
import { machinesArtifact, policyArtifacts } from '../fixtures/tree.js';

const POLICIES = policyArtifacts();

/** Submits an input of the engine's own. */
export const submit = (
  harness: { readonly engine: TreeEngine },
  tree: string,
  input: NewInput,
  materials: readonly Artifact[] = [],
  rememberInputId = false,
) => harness.engine.submit(tree, { input, materials, rememberInputId });

/** The case of a tree, and who acts in it. */
export interface TreeOwner {
  readonly case_id: string;
  readonly actor_id: string;
  /** Whether a caller has chosen the ids of the inputs, as for the run of a key. */
  readonly rememberInputId?: boolean;
}

/** Opens a tree with an agent. Conditions and counters follow the lanes, roles and actions. */
export async function start(
  harness: { readonly engine: TreeEngine },
  tree: string,
  link: { link: 'attached' | 'remote'; idle_ms: number | null } = { link: 'attached', idle_ms: null },
  policies: readonly Artifact[] = POLICIES,
  { case_id, actor_id, rememberInputId = false }: TreeOwner = { case_id: 'case-1', actor_id: 'tester' },
): Promise<void> {
  const machines = machinesArtifact(policies);
  const [lanes, roles, actions, conditions, counters] = policies.map((artifact) => ({
    git_sha: 'b'.repeat(40),
    sha256: artifactRef(artifact).hash_sha256,
    source: 'manifest' as const,
    artifact: artifactRef(artifact),
  }));
  const open: NewInput = {
    kind: 'open',
    run_id: tree,
    input_id: 'open',
    correlation_id: 'cor_1',
    case_id,
    taxonomy_versions: null,
    scope: {},
    policies: {
      lanes: lanes!,
      roles: roles!,
      actions: actions!,
      ...mapOptional({ conditions, counters }, (pin) => pin),
    },
    machines: artifactRef(machines),
  };
  const materials = [...policies.slice(0, 3), machines, ...policies.slice(3)];
  const agent: NewInput = {
    kind: 'start_agent',
    run_id: tree,
    input_id: 'start',
    actor: { actor_type: 'agent', actor_id },
    role_id: 'SANDBOX_AGENT',
    lane_id: 'SANDBOX_FILES',
    exposure: 'detailed',
    budget: null,
    ...link,
  };
  await Promise.all([
    submit(harness, tree, open, materials, rememberInputId),
    submit(harness, tree, agent, [], rememberInputId),
  ]);
}

export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
