import type { AnyPolicyFile, ForPolicyFiles, Pin, PinProblem } from '../../contract/policy/pins.js';
import { UNPINNED, type PolicyVersions } from '../../contract/shapes.js';

/**
 * The policy versions that a run carries. A file without a known version is UNPINNED in records that need a value
 * (C44), and no run is allowed under it (S4-29).
 */
export function policyVersions(
  pins: ForPolicyFiles<Pin | { readonly problem: PinProblem }>,
  machines_sha256: string,
): PolicyVersions {
  const version = (name: AnyPolicyFile): string => {
    const pin = pins[name];
    return pin === undefined || 'problem' in pin ? UNPINNED : pin.git_sha;
  };
  return {
    lanes: version('lanes'),
    roles: version('roles'),
    actions: version('actions'),
    machines: machines_sha256,
    ...(pins.conditions === undefined ? {} : { conditions: version('conditions') }),
  };
}
