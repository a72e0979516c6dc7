// Packages that need a later Node than Turnpike: they are no dependencies, and `npm run test:sdks` installs them in a
// folder of their own.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The folder with the packages. */
const FOLDER = process.env['TURNPIKE_SDKS'] ?? '';

/** A module of one of these packages, by its path below node_modules. */
export const loadPackage = async (path: string): Promise<unknown> =>
  import(pathToFileURL(createRequire(join(FOLDER, 'package.json')).resolve(`./node_modules/${path}`)).href);
