import { mapOptional, type ForPolicyFiles, type Pin, type PinProblem } from '../../contract/policy/pins.js';
import { UNPINNED, type PolicyVersions } from '../../contract/shapes.js';

/**
 * The policy versions that a run carries. A file without a known version is UNPINNED in records that need a value
 * (C44), and no run is allowed under it (S4-29).
 */
export function policyVersions(
  pins: ForPolicyFiles<Pin | { readonly problem: PinProblem }>,
  machines_sha256: string,
): PolicyVersions {
  return {
    lanes: versionOf(pins.lanes),
    roles: versionOf(pins.roles),
    actions: versionOf(pins.actions),
    machines: machines_sha256,
    ...mapOptional(pins, versionOf),
  };
}

const versionOf = (pin: Pin | { readonly problem: PinProblem }): string => ('problem' in pin ? UNPINNED : pin.git_sha);
