// The how-to guides, each followed in a new folder as its reader would. TURNPIKE_WRITE_PAGES=1 writes their outputs.

import { beforeAll, test } from '@jest/globals';
import { MS_MAX } from '../programs.js';
import { followFile, installPackage } from './follow-page.js';
import { GUIDES } from './pages.js';

let packageFolder: string;
beforeAll(async () => {
  packageFolder = await installPackage();
}, 300_000);

test.each(GUIDES)('%s prints what it shows', (path) => followFile(path, packageFolder), MS_MAX);
