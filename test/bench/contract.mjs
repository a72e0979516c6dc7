import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pinManifest } from '../../build/compiled/src/home/policy/manifest-policy-source.js';

const SHIPPED = fileURLToPath(new URL('../../policies/contract/v1', import.meta.url));

/** Conditions that every action with a path meets, and that no step of a benchmark satisfies. */
const CONDITIONS = [
  (n) => `resource.name like ".env${n}*"`,
  (n) => `resource in Path::"/sandbox/.git${n}"`,
  () => 'context.label.flags.contains("contains_phi")',
  (n) => `context.now > datetime("${2100 + n}-01-01")`,
  (n) => `resource.extension == "key${n}" && context.lane != "SANDBOX_FILES"`,
];

/** The text of a condition file. */
export const conditionsOf = (count) =>
  Array.from(
    { length: count },
    (_, n) =>
      `@id("condition_${n}")\nforbid (principal, action, resource is Path)\nwhen { ${CONDITIONS[n % CONDITIONS.length](n)} };\n`,
  ).join('');

/** Writes of a case within an hour, and the condition that reads them. */
const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-11-28
counters:
  - { name: writes, over: case, window: { sliding: 1h }, counts: [{ action: WRITE_FILE }] }
`;
const COUNTED = `@id("counted")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.writes >= 1000000000 };
`;

/**
 * The shipped policy, except that the limit on denials equals the limit on steps.
 * @param source another file of actions
 * @param conditions number of conditions
 * @param counters whether a condition reads a counter of writes
 */
export function patientContract(
  folder,
  source = join(SHIPPED, 'policy/actions.yaml'),
  { conditions = 0, counters = false } = {},
) {
  cpSync(SHIPPED, folder, { recursive: true });
  const actions = join(folder, 'policy/actions.yaml');
  const text = readFileSync(source, 'utf8');
  writeFileSync(actions, text.replace(/denials_per_run_max: 10\b/, 'denials_per_run_max: 100000'));
  const files = ['lanes', 'roles', 'actions'].map((name) => {
    const path = `policy/${name}.yaml`;
    return { path, bytes: readFileSync(join(folder, path)), pin: { problem: 'never_committed' } };
  });
  const optional = [
    ['policy/conditions.cedar', conditionsOf(conditions) + (counters ? COUNTED : '')],
    ['policy/counters.yaml', counters ? COUNTERS : ''],
  ];
  for (const [path, written] of optional) {
    if (written === '') continue;
    writeFileSync(join(folder, path), written);
    files.push({ path, bytes: Buffer.from(written), pin: { problem: 'never_committed' } });
  }
  writeFileSync(join(folder, 'pins.json'), JSON.stringify(pinManifest(files)));
  return folder;
}
