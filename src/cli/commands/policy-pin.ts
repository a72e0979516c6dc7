import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gitPolicySource } from '../../adapters/git-policy-source.js';
import { PIN_MANIFEST, pinManifest, type PinnableFile } from '../../adapters/manifest-policy-source.js';
import { NO_OPERANDS, type Command } from '../command.js';
import { contractOf, loadContract, REGISTRATIONS_OPTION, registrationsOf, shownPath, soundPolicy } from '../folders.js';
import { usage } from '../io.js';
import { escaped, jsonLine } from '../terminal.js';

/** `turnpike policy pin`: writes pins.json, by which runs know the version of every policy file. */
export const policyPin: Command = {
  name: 'policy pin',
  summary: 'Pin a policy: write pins.json into its contract folder',
  operands: NO_OPERANDS,
  options: [REGISTRATIONS_OPTION],
  notes: [
    'A file that is clean in Git is pinned by its last commit, any other by the id of its bytes. Trees that run',
    'already keep the policy that they began with.',
  ],
  async run(args, io) {
    const contract = contractOf(args, io);
    if (!contract.chosen) throw usage('which contract? say --contract DIR, or make ./contract by `turnpike init`');
    const registrations = await registrationsOf(args, io);
    soundPolicy((await loadContract(contract, io, { pins: 'git', registrations })).check);
    const manifest = pinManifest(await pinnableFiles(contract.path));
    const path = join(contract.path, PIN_MANIFEST);
    await replaceFile(path, `${JSON.stringify(manifest, null, 2)}\n`);
    if (args.flag('json')) {
      await io.stdout.write(jsonLine(manifest));
      return 0;
    }
    for (const file of manifest.files) await io.stdout.write(`${file.git_sha}  ${escaped(file.path)}\n`);
    await io.stdout.write(`pinned in ${escaped(shownPath(path, io))}\n`);
    return 0;
  },
};

/** Lanes, roles, and every actions policy that lies there: each may be chosen. */
async function pinnableFiles(contract: string): Promise<readonly PinnableFile[]> {
  const names = (await readdir(join(contract, 'policy'))).filter((name) =>
    /^actions(?:\.[A-Za-z0-9_-]+)*\.yaml$/u.test(name),
  );
  const files = new Map<string, PinnableFile>();
  for (const actions of names.sort()) {
    const loaded = await gitPolicySource(contract, { actions }).load();
    const paths = { lanes: 'lanes.yaml', roles: 'roles.yaml', actions };
    for (const name of ['lanes', 'roles', 'actions'] as const) {
      const path = `policy/${paths[name]}`;
      files.set(path, { path, bytes: loaded[name].bytes, pin: loaded[name].pin });
    }
  }
  return [...files.values()];
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new-${process.pid}`;
  try {
    await writeFile(draft, text, { flag: 'wx' });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
