// Copies a ledger in a process of its own, which may be killed. Its argument is the JSON of two locations.

import { copyHome } from '../../../../src/features/backup/copy/copy-home.js';
import { resolveLocation, type LocationOptions } from '../../../../src/home/ledger-location.js';

type Place = readonly [name: string, options?: LocationOptions];

const [from, to] = JSON.parse(process.argv[2] ?? '[]') as readonly [Place, Place];
await copyHome({ from: resolveLocation(...from), to: resolveLocation(...to) });
