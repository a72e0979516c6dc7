// Records the rotation of a key in a run tree of its own, whose id follows from the rotation. So the record can be
// repeated, and is made once.

import type { RotateKeyInput } from '../../core/contract/run/input.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { InvariantError } from '../../core/errors.js';
import type { PolicyCache } from '../../runtime/policy-cache.js';

/** What a record of a rotation uses. */
export interface RecordParts {
  readonly engine: Pick<TreeEngine, 'submit' | 'peek'>;
  readonly policyCache: Pick<PolicyCache, 'current'>;
}

/** What is recorded, and where. */
export interface RotationRecord {
  readonly tree_id: string;
  readonly correlation_id: string;
  readonly rotation: RotateKeyInput['rotation'];
  readonly actor: string;
  readonly role: string;
}

/** The input id of the record in its tree. */
export const ROTATED = 'rotated';

/** Continues a tree that an earlier attempt has opened. A recovery may have ended it, which changes nothing here. */
export async function recordRotation({ engine, policyCache }: RecordParts, record: RotationRecord): Promise<void> {
  const { tree_id, correlation_id, rotation, actor, role } = record;
  if ((await engine.peek(tree_id)) === null) {
    const { pins, machines, materials } = await policyCache.current();
    const open = { kind: 'open', run_id: tree_id, input_id: `${tree_id}/open`, case_id: null, scope: {} } as const;
    const given = { correlation_id, taxonomy_versions: null, policies: pins, machines };
    await engine.submit(tree_id, { input: { ...open, ...given }, materials, rememberInputId: false });
  }
  const input = {
    kind: 'rotate_key',
    run_id: tree_id,
    input_id: ROTATED,
    rotation,
    actor: { actor_type: 'human', actor_id: actor },
    role_id: role,
  } as const;
  const { refused } = await engine.submit(tree_id, { input, materials: [], rememberInputId: true });
  if (refused) throw new InvariantError('the tree of a rotation has refused its record');
}

/** Ends the tree of a recorded rotation. Does nothing if it has ended. */
export async function endRotationTree({ engine }: Pick<RecordParts, 'engine'>, tree_id: string): Promise<void> {
  if ((await engine.peek(tree_id))?.isLive(tree_id) !== true) return;
  const end = { kind: 'cancel', run_id: tree_id, input_id: `${tree_id}/end`, reason: 'no_longer_needed' } as const;
  await engine.submit(tree_id, { input: end, materials: [], rememberInputId: false });
}
