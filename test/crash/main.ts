// npm run campaign -- crash [--kills 300] [--seed N] [--only PART] [--every N] [--interpreter NAME]
//
// Kills, tears, fills and stops real processes on real homes, and checks each time whether the guarantees hold. Ends
// with 1, the seed, and the homes with findings.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { everyBoundary, everyRecovery, randomKills, type CampaignOptions } from './campaign.js';
import { everyEffect, everyEffectRecovery } from './effects-campaign.js';
import { plantedEffects } from './effects-planted.js';
import { fullDisk, limitedFiles } from './full-disk.js';
import { plantedFaults } from './planted.js';
import { portFaults } from './port-faults.js';
import { stoppedWriter, twoProcesses } from './processes.js';
import { tableOf, type Tally } from './tally.js';
import { tornHead } from './torn-head.js';
import { tornWal } from './torn-wal.js';
import { torn } from './torn.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    // The fraction of the damage to the database's log; all of it takes a quarter of an hour.
    every: { type: 'string', default: '1' },
    // Read by every process of the campaign.
    interpreter: { type: 'string' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'turnpike-crash-'));
const options: CampaignOptions = {
  folder,
  program: fileURLToPath(new URL('./victim.js', import.meta.url)),
  seed: Number(values.seed),
  say: (line) => void process.stderr.write(`${line}\n`),
};

const PARTS: Readonly<Record<string, () => Promise<Tally> | Tally>> = {
  boundaries: () => everyBoundary(options),
  recoveries: () => everyRecovery(options),
  kills: () => randomKills(options, Number(values.kills)),
  torn: () => torn({ ...options, samples: 300 }),
  head: () => tornHead(options),
  wal: () => tornWal(options, Number(values.every)),
  ports: () => portFaults(options),
  disk: () => fullDisk(options),
  restarts: () => fullDisk(options, undefined, 'restarted'),
  files: () => limitedFiles(options),
  locked: () => twoProcesses(options),
  stopped: () => stoppedWriter(options),
  counted: () => everyEffect(options),
  recounted: () => everyEffectRecovery(options),
  planted: () => plantedFaults(options),
  'planted-effects': () => plantedEffects(options),
};

const tallies: Tally[] = [];
for (const [name, part] of Object.entries(PARTS)) {
  if (values.only !== '' && !values.only.split(',').includes(name)) continue;
  process.stderr.write(`${name} ...\n`);
  tallies.push(await part());
}
const found = tallies.reduce((sum, { violations }) => sum + violations.length, 0);
process.stdout.write(`seed ${values.seed}\n${tableOf(tallies)}\n`);
if (found > 0) process.stdout.write(`\n${found} violations; the homes are in ${folder}\n`);
else rmSync(folder, { recursive: true, force: true });
process.exitCode = found > 0 ? 1 : 0;
