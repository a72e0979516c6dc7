// The templates of `turnpike init`: a starter policy for one kind of use, and an example with its test.

import { readdir, readFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { createFile } from '../../system/files/small-file.js';
import { shippedContract } from '../../runtime/shipped-contract.js';
import { packageFile } from '../../system/package-files.js';
import { wordType } from './option-types.js';
import {
  PIN_MANIFEST,
  pinManifest,
  readAcceptedCautions,
  type PinnableFile,
} from '../../home/policy/manifest-policy-source.js';

/** What each template is for. */
export const TEMPLATES = {
  documents: 'agents that work on text and Markdown files',
  coding: 'agents that work on source code',
  support: 'a service whose agents call a tool after an approval',
  records: 'a service whose agents write and read a table',
  reference: 'the policy of the contract with all its lanes, and no example',
} as const;
export type TemplateName = keyof typeof TEMPLATES;

export const TEMPLATE_DEFAULT: TemplateName = 'documents';

/** One command that a new project can begin with, and what it does. */
export interface NextCommand {
  /** The words before the options for home and contract folder; null for a command that takes none. */
  readonly turnpike: string | null;
  /** The words after them, or the whole command. */
  readonly rest: string;
  readonly does: string;
}

const PROPOSE: readonly NextCommand[] = [
  { turnpike: 'turnpike run', rest: 'proposals.jsonl', does: 'submit the proposals of the example, one per line' },
  { turnpike: 'turnpike runs', rest: '', does: 'show the runs and their outcomes' },
  { turnpike: null, rest: 'node --test proposals.test.mjs', does: 'test the policy; needs `npm install turnpike`' },
];
const SERVE: readonly NextCommand[] = [
  { turnpike: null, rest: 'node service.mjs', does: 'start the service; needs `npm install turnpike`' },
  { turnpike: 'turnpike runs', rest: '', does: 'show the runs and their outcomes' },
  { turnpike: null, rest: 'node --test service.test.mjs', does: 'test the service' },
];
const LOOK: readonly NextCommand[] = [
  { turnpike: 'turnpike actions', rest: '', does: 'list the actions that an agent may propose' },
  { turnpike: 'turnpike policy check', rest: '', does: 'check the policy' },
  { turnpike: 'turnpike runs', rest: '', does: 'show the runs and their outcomes' },
];

export const NEXT_COMMANDS: Readonly<Record<TemplateName, readonly NextCommand[]>> = {
  documents: PROPOSE,
  coding: PROPOSE,
  support: SERVE,
  records: SERVE,
  reference: LOOK,
};

export const TEMPLATE_TYPE = wordType(Object.keys(TEMPLATES) as readonly TemplateName[]);

/** The folder whose `policy` a template copies, with the lint errors that it accepts in `pins.json`. */
const templateContract = (name: TemplateName): string =>
  name === 'reference' ? shippedContract() : packageFile(`policies/templates/${name}`);

/** What became of one file of the example. */
export interface ExampleFile {
  readonly name: string;
  /** `kept`: a file of this name and another content was there, and is unchanged. */
  readonly state: 'created' | 'kept';
}

/** Paths that the files of an example name. */
export interface ExamplePlaces {
  readonly home: string;
  readonly contract: string;
}

const MODE = 0o644;

/** Writes the example of a template into a folder, and replaces no file. */
export async function writeExample(
  name: TemplateName,
  folder: string,
  places: ExamplePlaces,
): Promise<readonly ExampleFile[]> {
  const source = join(templateContract(name), 'project');
  if (!existsSync(source)) return [];
  const written: ExampleFile[] = [];
  for (const file of (await readdir(source)).sort()) {
    const text = withPlaces(file, await readFile(join(source, file), 'utf8'), places);
    const path = join(folder, file);
    const isOurs = createFile(path, text, MODE) || readFileSync(path, 'utf8') === text;
    written.push({ name: file, state: isOurs ? 'created' : 'kept' });
  }
  return written;
}

/** Programs of an example name the folders as literals. */
function withPlaces(file: string, text: string, { home, contract }: ExamplePlaces): string {
  if (!file.endsWith('.mjs')) return text;
  const literal = (path: string): string => (/^[\w./-]+$/u.test(path) ? `'${path}'` : JSON.stringify(path));
  return text.replaceAll("'.turnpike'", () => literal(home)).replaceAll("'contract'", () => literal(contract));
}

/** Creates the contract folder completely or not at all; `first` runs when it is complete but not yet in place. */
export async function createContract(
  contract: string,
  template: TemplateName,
  first: () => Promise<unknown>,
): Promise<void> {
  const draft = `${contract}.new-${process.pid}`;
  const source = templateContract(template);
  try {
    await mkdir(join(draft, 'policy'), { recursive: true });
    const files = await readPolicyFiles(source);
    for (const { path, bytes } of files) await writeFile(join(draft, path), bytes);
    const manifest = pinManifest(files, await readAcceptedCautions(source));
    await writeFile(join(draft, PIN_MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    await mkdir(dirname(contract), { recursive: true });
    await first();
    await rename(draft, contract);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Copies have no Git history: each is pinned by the id of its bytes. */
async function readPolicyFiles(source: string): Promise<readonly PinnableFile[]> {
  const folder = join(source, 'policy');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  return Promise.all(
    names.map(async (name) => ({
      path: `policy/${name}`,
      bytes: await readFile(join(folder, name)),
      pin: { problem: 'never_committed' } as const,
    })),
  );
}
