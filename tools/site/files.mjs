// The files of the repository that become pages of the site.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

export const isFile = (path) => existsSync(path) && statSync(path).isFile();

/** The files below a folder whose names end with `ending`, as sorted paths from the folder. */
export const filesBelow = (folder, ending) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(ending) && isFile(join(folder, name)))
    .sort();

/** The Markdown that becomes pages, by paths from the root of the repository. */
export const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...filesBelow(join(ROOT, 'docs'), '.md')
    .map((name) => `docs/${name}`)
    .filter((path) => !path.startsWith('docs/examples/')),
].sort();
