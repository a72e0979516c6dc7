import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository: campaigns run from a build of this file, deeper in it. */
export const ROOT = holding('package-lock.json', dirname(fileURLToPath(import.meta.url)));

function holding(name: string, folder: string): string {
  return existsSync(join(folder, name)) ? folder : holding(name, resolve(folder, '..'));
}
