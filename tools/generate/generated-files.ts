// The files that are generated from the code, by the name that `npm run generate -- NAME` knows. Tests compare each of
// them with what is here.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, textOf } from '../../test/sources.js';
import { apiReport } from './api-report.js';
import { commandsPage } from './reference/commands-page.js';
import { configurationPage, configurationSchemaFile } from './reference/configuration-page.js';
import { httpApiPage } from './reference/http-api-page.js';
import { policyFilesPage } from './reference/policy-files-page.js';
import { schemaFiles } from './schemas.js';
import { shippedPins } from './shipped-pins.js';

/** The folder of the published schemas: a file that is not generated has no place in it. */
export const SCHEMAS = 'policies/contract/v1/schemas';
/** All that others can name, and what they could name in the version before. */
export const SURFACE = 'test/fixtures/surface.txt';

/** The generated pages of the reference. */
export const REFERENCE: ReadonlyMap<string, () => string> = new Map([
  ['docs/reference/policy-files.md', policyFilesPage],
  ['docs/reference/commands.md', commandsPage],
  ['docs/reference/http-api.md', httpApiPage],
  ['docs/reference/configuration.md', configurationPage],
  ['docs/reference/turnpike.schema.json', configurationSchemaFile],
]);

/** The files of each name: paths from the root of the repository, and what they have to contain. */
export const GENERATED: Readonly<Record<string, () => ReadonlyMap<string, string>>> = {
  schemas: () => new Map([...schemaFiles()].map(([file, text]) => [`${SCHEMAS}/${file}`, text])),
  pins: () => new Map([['policies/contract/v1/pins.json', `${JSON.stringify(shippedPins(), null, 2)}\n`]]),
  reference: () => new Map([...REFERENCE].map(([path, page]) => [path, page()])),
  api: () => new Map([['docs/reference/api-report.txt', apiReport()]]),
  surface: () =>
    new Map([[SURFACE, `${[...new Set([...surfaceLines(), ...linesOf(textOf(SURFACE))])].sort().join('\n')}\n`]]),
};

/** A line for each command, option, route, code and export of the build, and for what else others can name. */
export const surfaceLines = (): readonly string[] =>
  linesOf(execFileSync(process.execPath, [join(ROOT, 'tools/surface.mjs')], { encoding: 'utf8', maxBuffer: 1 << 24 }));

/** The lines of a list that are not empty. */
export const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');
