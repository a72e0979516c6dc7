import { usageError } from '../../errors.js';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { PIN_MANIFEST, pinManifest, type PinnableFile } from '../../adapters/policy/manifest-policy-source.js';
import { createHome, isVacant } from '../../runtime/home/home.js';
import { shippedContract } from '../../runtime/shipped-contract.js';
import { readPrivateLine } from '../../adapters/keys/key-file.js';
import { generateLedgerKey } from '../../runtime/home/ledger-key.js';
import { commandUsageError } from '../arguments.js';
import { NO_OPERANDS, type CommandArguments, type CliCommand } from '../command.js';
import { CONTRACT_DEFAULT, homeOf, displayPath } from '../options/folders.js';
import { type Io } from '../io.js';
import { escapeText, jsonLine } from '../text/terminal.js';

/** `turnpike init`: creates a home directory and a contract folder to edit. */
export const init: CliCommand = {
  name: 'init',
  summary: 'Create a home directory, and a contract folder to edit',
  operands: NO_OPERANDS,
  options: [
    { name: 'ledger-key', value: 'FILE', help: 'sign checkpoints with the private key in FILE instead of a new one' },
    { name: 'ledger-name', value: 'NAME', help: 'the name of the log in its checkpoints, e.g. example.org/turnpike' },
  ],
  notes: [
    'The contract folder is a pinned copy of the policies that this package ships. If either folder exists and is not',
    'empty, the command changes nothing and fails.',
  ],
  async run(args, io) {
    const { home } = homeOf(args, io);
    const contract = resolve(io.cwd, args.text('contract') ?? CONTRACT_DEFAULT);
    for (const folder of [home, contract]) {
      if (!isVacant(folder))
        throw usageError(`${folder} is not empty, and nothing was created: name another folder, or use it as it is`);
    }
    const key = readLedgerKey(args, io);
    await createContract(contract, () => createHome(home, key));
    const shown = { home: displayPath(home, io), contract: displayPath(contract, io) };
    await io.stdout.write(args.flag('json') ? jsonLine(shown) : escapeLines(welcomeLines(shown.home, shown.contract)));
    return 0;
  },
};

/** @throws UsageError if both a name and a key are given, and for an invalid name */
function readLedgerKey(args: CommandArguments, io: Io): string | undefined {
  const [file, name] = [args.text('ledger-key'), args.text('ledger-name')];
  if (file === undefined) return name === undefined ? undefined : generateLedgerKey(name);
  if (name !== undefined) throw commandUsageError(init, 'the key contains the name of the log: omit --ledger-name');
  const key = readPrivateLine(resolve(io.cwd, file));
  if (key === null) throw usageError(`${file} does not exist`);
  return key;
}

const welcomeLines = (home: string, contract: string): readonly string[] => {
  const where = `${home === '.turnpike' ? '' : ` --home ${home}`}${contract === 'contract' ? '' : ` --contract ${contract}`}`;
  return [
    `created the home directory   ${home}/`,
    `created the contract folder  ${contract}/policy/{lanes,roles,actions}.yaml, pinned by ${contract}/${PIN_MANIFEST}`,
    '',
    'next:',
    `  turnpike actions${where}              list the actions that an agent may propose (--json: their schemas)`,
    `  turnpike run${where} proposals.jsonl  submit proposals, one per line (- reads stdin)`,
    `  turnpike runs${where}                 show the runs and their outcomes`,
    `after editing ${contract}/policy/*.yaml:`,
    `  turnpike policy check${where} && turnpike policy pin${where}`,
    `to work on source code instead of documents, copy ${contract}/policy/actions.coding.yaml over actions.yaml, and pin`,
  ];
};

const escapeLines = (lines: readonly string[]): string => lines.map((line) => `${escapeText(line)}\n`).join('');

/** Creates the contract folder completely or not at all; `first` runs when it is complete but not yet in place. */
async function createContract(contract: string, first: () => Promise<unknown>): Promise<void> {
  const draft = `${contract}.new-${process.pid}`;
  try {
    await mkdir(join(draft, 'policy'), { recursive: true });
    const files = await readShippedFiles();
    for (const { path, bytes } of files) await writeFile(join(draft, path), bytes);
    await writeFile(join(draft, PIN_MANIFEST), `${JSON.stringify(pinManifest(files), null, 2)}\n`);
    await mkdir(dirname(contract), { recursive: true });
    await first();
    await rename(draft, contract);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Copies have no Git history: each is pinned by the id of its bytes. */
async function readShippedFiles(): Promise<readonly PinnableFile[]> {
  const folder = join(shippedContract(), 'policy');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  return Promise.all(
    names.map(async (name) => ({
      path: `policy/${name}`,
      bytes: await readFile(join(folder, name)),
      pin: { problem: 'never_committed' } as const,
    })),
  );
}
