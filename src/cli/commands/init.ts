import { usageError } from '../../errors.js';
import { resolve } from 'node:path';
import { PIN_MANIFEST } from '../../adapters/policy/manifest-policy-source.js';
import { createHome, isVacant } from '../../runtime/home/home.js';
import { readPrivateLine } from '../../adapters/keys/key-file.js';
import { generateLedgerKey } from '../../runtime/home/ledger-key.js';
import { commandUsageError } from '../arguments.js';
import { createContract } from '../create-contract.js';
import { NO_OPERANDS, type CommandArguments, type CliCommand } from '../command.js';
import { CONTRACT_DEFAULT, homeOf, displayPath } from '../options/folders.js';
import { SCHEMA_DEFAULT } from '../store/shared-home.js';
import { type Io } from '../io.js';
import { escapeText, jsonLine } from '../text/terminal.js';

const STORE_ONLY_OPTIONS = ['schema', 'keys', 'sandbox', 'volume'] as const;

/** `turnpike init`: creates a home directory and a contract folder to edit. */
export const init: CliCommand = {
  name: 'init',
  access: 'write',
  summary: 'Create a home directory, and a contract folder to edit',
  operands: NO_OPERANDS,
  options: [
    { name: 'ledger-key', value: 'FILE', help: 'sign checkpoints with the private key in FILE instead of a new one' },
    { name: 'ledger-name', value: 'NAME', help: 'the name of the log in its checkpoints, e.g. example.org/turnpike' },
    { name: 'store', value: 'URL', help: 'store the ledger in this PostgreSQL database, for one or more workers' },
    { name: 'schema', value: 'NAME', help: `with --store: the schema of its tables (default ${SCHEMA_DEFAULT})` },
    { name: 'keys', value: 'DIR', help: 'with --store: the key folder that workers share (default: in the home)' },
    { name: 'sandbox', value: 'DIR', help: 'with --store: the sandbox that workers share (default: in the home)' },
    { name: 'volume', value: 'NAME', help: 'with --store: the name of the sandbox volume' },
    { name: 'unsafe-shared', help: 'with --store: accept a volume on a network file system; danger: see the guide' },
    { name: 'without-volume', help: 'with --store: join without the volume; other workers execute the steps' },
  ],
  notes: [
    'The contract folder is a pinned copy of the policies that this package ships. If either folder exists and is not',
    'empty, the command changes nothing and fails. With --store, a contract folder that exists is left as it is. If the',
    'database has a ledger already, the home joins it: --keys must then name its key folder. The home stores the URL',
    'without its password: give that with --store, PGPASSWORD or a .pgpass file.',
  ],
  async run(args, io) {
    const { home } = homeOf(args, io);
    const contract = resolve(io.cwd, args.text('contract') ?? CONTRACT_DEFAULT);
    const store = args.text('store');
    if (store !== undefined) {
      const { initStore } = await import('../store/init-store.js');
      return initStore({ home, contract, url: store, key: readLedgerKey(args, io) }, args, io);
    }
    for (const name of STORE_ONLY_OPTIONS)
      if (args.text(name) !== undefined) throw commandUsageError(init, `--${name} needs --store`);
    for (const name of ['without-volume', 'unsafe-shared'])
      if (args.flag(name)) throw commandUsageError(init, `--${name} needs --store`);
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
