// A contract folder to edit: a pinned copy of the policies of a template.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  PIN_MANIFEST,
  pinManifest,
  readAcceptedCautions,
  type PinnableFile,
} from '../../home/policy/manifest-policy-source.js';
import { templateContract, type TemplateName } from './templates.js';

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
