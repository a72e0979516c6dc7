// Makes a backup in a process of its own, which may be killed. Its arguments are the home and the folder of the backup.

import { backupHome } from '../../src/features/backup/backup-home.js';
import { resolveLocation } from '../../src/home/ledger-location.js';

const [home = '', to = ''] = process.argv.slice(2);
const { manifest, verdict } = await backupHome({
  from: resolveLocation(home),
  to,
  contract: null,
  keys: true,
  // The restore of the campaign replays.
  replay: false,
  madeBy: '0.0.0',
  madeAt: '2026-03-01T12:00:00.000Z',
});
if (manifest === null) {
  process.stderr.write(`${JSON.stringify(verdict)}\n`);
  process.exit(1);
}
