import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pinManifest } from '../../build/compiled/src/adapters/policy/manifest-policy-source.js';

const SHIPPED = fileURLToPath(new URL('../../policies/contract/v1', import.meta.url));

/**
 * The shipped policy, except that the limit on denials equals the limit on steps.
 * @param source another file of actions
 */
export function patientContract(folder, source = join(SHIPPED, 'policy/actions.yaml')) {
  cpSync(SHIPPED, folder, { recursive: true });
  const actions = join(folder, 'policy/actions.yaml');
  const text = readFileSync(source, 'utf8');
  writeFileSync(actions, text.replace(/denials_per_run_max: 10\b/, 'denials_per_run_max: 100000'));
  const files = ['lanes', 'roles', 'actions'].map((name) => {
    const path = `policy/${name}.yaml`;
    return { path, bytes: readFileSync(join(folder, path)), pin: { problem: 'never_committed' } };
  });
  writeFileSync(join(folder, 'pins.json'), JSON.stringify(pinManifest(files)));
  return folder;
}
