// The tutorials, each followed from an empty folder as its reader would. TURNPIKE_WRITE_PAGES=1 writes their outputs.

import { beforeAll, test } from '@jest/globals';
import { MS_MAX } from '../programs.js';
import { addClaude, followFile, installPackage } from './follow-page.js';
import { TUTORIALS } from './pages.js';

let packageFolder: string;
beforeAll(async () => {
  packageFolder = await installPackage(['ai', 'zod']);
  addClaude(packageFolder);
}, 300_000);

test.each(TUTORIALS)('%s prints what it shows', (path) => followFile(path, packageFolder), MS_MAX);
