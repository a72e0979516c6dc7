import { usageError } from '../../../core/errors.js';
import { resolve } from 'node:path';
import { PIN_MANIFEST } from '../../../home/policy/manifest-policy-source.js';
import { createHome, isVacant } from '../../../home/home.js';
import { readPrivateLine } from '../../../stores/keys/key-file.js';
import { generateLedgerKey } from '../../../home/ledger-key.js';
import {
  createContract,
  NEXT_COMMANDS,
  TEMPLATE_DEFAULT,
  TEMPLATE_TYPE,
  TEMPLATES,
  writeExample,
  type ExampleFile,
  type ExamplePlaces,
  type TemplateName,
} from '../templates.js';
import { PATH_TYPE } from '../option-types.js';
import { importWithPackage, SCHEMA_DEFAULT } from '../store/shared-home.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type ArgumentsOf, type CommandOption } from '../command.js';
import { CONTRACT_DEFAULT, displayPath, HOME_DEFAULT, homeOf } from '../options/folders.js';
import type { Io } from '../io.js';
import { escapeLines, jsonLine } from '../text/terminal.js';

const OPTIONS = [
  {
    name: 'template',
    value: 'NAME',
    type: TEMPLATE_TYPE,
    default: TEMPLATE_DEFAULT,
    help: `the starter policy and example: ${Object.keys(TEMPLATES).join(', ')} (default ${TEMPLATE_DEFAULT})`,
  },
  { name: 'ledger-key', value: 'FILE', help: 'sign checkpoints with the private key in FILE instead of a new one' },
  { name: 'ledger-name', value: 'NAME', help: 'the name of the log in its checkpoints, e.g. example.org/turnpike' },
  { name: 'store', value: 'URL', help: 'store the ledger in this PostgreSQL database, for one or more workers' },
  {
    name: 'schema',
    value: 'NAME',
    default: SCHEMA_DEFAULT,
    needs: 'store',
    help: `with --store: the schema of its tables (default ${SCHEMA_DEFAULT})`,
  },
  {
    name: 'keys',
    value: 'DIR',
    type: PATH_TYPE,
    needs: 'store',
    help: 'with --store: the key folder that workers share (default: in the home)',
  },
  {
    name: 'sandbox',
    value: 'DIR',
    type: PATH_TYPE,
    needs: 'store',
    help: 'with --store: the sandbox that workers share (default: in the home)',
  },
  { name: 'volume', value: 'NAME', needs: 'store', help: 'with --store: the name of the sandbox volume' },
  {
    name: 'unsafe-shared',
    needs: 'store',
    help: 'with --store: accept a volume on a network file system; danger: see the guide',
  },
  {
    name: 'without-volume',
    needs: 'store',
    help: 'with --store: join without the volume; other workers execute the steps',
  },
] as const satisfies readonly CommandOption[];

type InitArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike init`: creates a home directory and a contract folder to edit. */
export const init: CliCommand = defineCommand({
  name: 'init',
  access: 'write',
  summary: 'Create a home directory, and a contract folder to edit',
  operands: NO_OPERANDS,
  options: OPTIONS,
  notes: [
    ...Object.entries(TEMPLATES).map(([name, use]) => `  ${name.padEnd(9)}  ${use}`),
    'The contract folder is a pinned copy of the policy of a template. If either folder exists and is not empty, the',
    'command changes nothing and fails. It writes the example into the working directory, and replaces no file there.',
    'With --store, a contract folder that exists is left as it is, and gets no example. If the database has a ledger',
    'already, the home joins it: --keys must then name its key folder. The home stores the URL without its password:',
    'give that with --store, PGPASSWORD or a .pgpass file.',
  ],
  async run(args, io) {
    const { home } = homeOf(args, io);
    const contract = resolve(io.cwd, args.values.contract ?? CONTRACT_DEFAULT);
    const { store, template, json } = args.values;
    if (store !== undefined) {
      const { initStore } = await importWithPackage('pg', () => import('../store/init-store.js'));
      return initStore({ home, contract, url: store, key: readLedgerKey(args, io) }, args.values, io);
    }
    for (const folder of [home, contract]) {
      if (!isVacant(folder))
        throw usageError(`${folder} is not empty, and nothing was created: name another folder, or use it as it is`);
    }
    const key = readLedgerKey(args, io);
    await createContract(contract, template, () => createHome(home, key));
    const shown = { home: displayPath(home, io), contract: displayPath(contract, io) };
    const created = { ...shown, template, files: await writeExample(template, io.cwd, shown) };
    await io.stdout.write(json ? jsonLine(created) : escapeLines(welcomeLines(created)));
    return 0;
  },
});

/** @throws UsageError if both a name and a key are given, and for an invalid name */
function readLedgerKey({ values, usageError: error }: InitArguments, io: Io): string | undefined {
  const { ledgerKey: file, ledgerName: name } = values;
  if (file === undefined) return name === undefined ? undefined : generateLedgerKey(name);
  if (name !== undefined) throw error('the key contains the name of the log: omit --ledger-name');
  const key = readPrivateLine(resolve(io.cwd, file));
  if (key === null) throw usageError(`${file} does not exist`);
  return key;
}

interface Created extends ExamplePlaces {
  readonly template: TemplateName;
  readonly files: readonly ExampleFile[];
}

function welcomeLines({ home, contract, template, files }: Created): readonly string[] {
  const where = [
    ...(home === HOME_DEFAULT ? [] : ['--home', quoteForShell(home)]),
    ...(contract === CONTRACT_DEFAULT ? [] : ['--contract', quoteForShell(contract)]),
  ];
  const commands = NEXT_COMMANDS[template].map(({ turnpike, rest, does }) => ({
    does,
    text: turnpike === null ? rest : [turnpike, ...where, rest].filter((word) => word !== '').join(' '),
  }));
  const width = Math.max(...commands.map(({ text }) => text.length));
  const named = (state: ExampleFile['state']): string =>
    files
      .filter((file) => file.state === state)
      .map(({ name }) => name)
      .join(', ');
  const [created, kept] = [named('created'), named('kept')];
  return [
    `created the home directory   ${home}/`,
    `created the contract folder  ${contract}/policy/{lanes,roles,actions}.yaml, pinned by ${contract}/${PIN_MANIFEST}`,
    ...(created === '' ? [] : [`created the example          ${created}`]),
    ...(kept === ''
      ? []
      : [`not replaced                 ${kept}: move it, and run \`turnpike init\` in a new folder`]),
    '',
    'next:',
    ...commands.map(({ text, does }) => `  ${text.padEnd(width)}  # ${does}`),
    `after editing ${contract}/policy/*.yaml:`,
    `  ${['turnpike policy check', ...where].join(' ')} && ${['turnpike policy pin', ...where].join(' ')}`,
  ];
}

/** A path as one word of a shell command. */
const quoteForShell = (path: string): string =>
  /^[\w./-]+$/u.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
