import { spawnSync } from 'node:child_process';

const FLAGS = [['-m'], ['-r', '-m']];

const canUnshare = (flags: readonly string[]): boolean => spawnSync('unshare', [...flags, 'true']).status === 0;

/**
 * The flags with which `unshare` creates a mount namespace on this machine.
 * @returns null, and prints one line, if it cannot create one; in CI it throws instead
 */
export function mountNamespace(canMake = canUnshare): readonly string[] | null {
  const flags = FLAGS.find((one) => canMake(one));
  if (flags !== undefined) return flags;
  if (process.env['CI'] !== undefined) throw new Error('CI must allow mount namespaces: `unshare -r -m true` fails');
  process.stdout.write('skipped: what needs a mount namespace, which this machine does not allow\n');
  return null;
}
