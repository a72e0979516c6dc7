import { copyHome, reopenHome, type CopyReport } from '../copy/copy-home.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { resolveLocation, type LedgerLocation } from '../../../home/ledger-location.js';
import { refuseTrackedKeys } from '../../../home/tracked-keys.js';
import {
  defineCommand,
  type ArgumentsOf,
  type CliCommand,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { printVerdict, VERDICT_CODES } from '../../../interfaces/cli/commands/ledger/ledger-verify-command.js';

const FROM_OPTIONS = [
  { name: 'from-home', value: 'DIR', help: 'with a URL as FROM: the folder of its keys, local state and sandbox' },
  { name: 'from-schema', value: 'NAME', help: 'with a URL as FROM: the schema of its tables (default turnpike)' },
] as const satisfies readonly CommandOption[];

const COPY_OPTIONS = [
  ...FROM_OPTIONS,
  { name: 'to-home', value: 'DIR', help: 'with a URL as TO: the new folder for keys, local state and sandbox' },
  { name: 'to-schema', value: 'NAME', help: 'with a URL as TO: the schema for its tables (default turnpike)' },
  { name: 'no-sandbox', help: 'do not copy the files of the sandbox: move them yourself' },
  { name: 'keep-source', help: 'leave FROM open for writing: for a copy that nothing will write to' },
  { name: 'no-replay', help: 'verify the copy without replaying the state machines' },
] as const satisfies readonly CommandOption[];

/** `turnpike home copy`: copies a ledger between an SQLite home and PostgreSQL. */
export const homeCopy: CliCommand = defineCommand({
  name: 'home copy',
  access: 'write',
  summary: 'Copy a closed ledger with its keys and files to another store, and verify the copy',
  operands: { usage: 'FROM TO', min: 2, max: 2 },
  options: COPY_OPTIONS,
  notes: [
    'FROM and TO are home directories or postgres:// URLs. No other process may have FROM open, and TO must be empty.',
    'The copy has the same entries, log, keys and tokens as FROM, so that proofs and evidence stay valid. Two ledgers that',
    'continue under one key contradict each other, so FROM is marked as copied: it is read, and not written any more. `home',
    'reopen` removes that mark. An interrupted copy is marked and cannot be opened: run the same command again, and it',
    'starts over. Exits as `ledger verify` does.',
  ],
  run: (args, io) => exitOneIfTampered(io, () => copy(args, io)),
});

async function copy(args: ArgumentsOf<typeof COPY_OPTIONS>, io: Io): Promise<ExitCode> {
  const { fromHome, fromSchema, toHome, toSchema, noSandbox, noReplay, keepSource, json } = args.values;
  const [from = '', to = ''] = args.operands;
  const report = await copyHome({
    from: await findLocation(from, { home: fromHome, schema: fromSchema }, io),
    to: await findLocation(to, { home: toHome, schema: toSchema }, io),
    sandbox: !noSandbox,
    replay: !noReplay,
    keepSource,
    progress: progressFor(args, io),
  });
  if (json) {
    await io.stdout.write(jsonLine(report));
  } else {
    await printVerdict(report.verdict, false, args, io);
    for (const line of linesOf(report, keepSource)) await io.stdout.write(`${escapeText(line)}\n`);
  }
  return VERDICT_CODES[report.verdict.verdict];
}

/**
 * The location of an operand, with the options `--from-home` and `--from-schema`, or those of the target.
 * @throws UsageError if a key of it is tracked by Git
 */
async function findLocation(
  name: string,
  place: Readonly<Record<'home' | 'schema', string | undefined>>,
  io: Io,
): Promise<LedgerLocation> {
  const location = resolveLocation(name, omitUndefined(place), io.cwd);
  await refuseTrackedKeys(location.paths);
  return location;
}

const linesOf = ({ from, to, entries, trees, verdict }: CopyReport, isKept: boolean): readonly string[] =>
  verdict.verdict === 'refused'
    ? [`${to} stays an unfinished copy: verify ${from}, repair it, and copy again`]
    : [
        `copied ${entries} entries of ${countText(trees, 'run tree')} from ${from} to ${to}`,
        isKept ? 'use only one of the two from now on' : `${from} is not opened for writing any more: use the copy`,
      ];

/** `turnpike home reopen`: lets a ledger be written again that was copied. */
export const homeReopen: CliCommand = defineCommand({
  name: 'home reopen',
  access: 'write',
  summary: 'Let a ledger be written again that was copied',
  operands: { usage: 'FROM', min: 1, max: 1 },
  options: FROM_OPTIONS,
  notes: [
    'Removes the mark that `home copy` has left. Use it only if nothing has written to the copy, and nothing ever will:',
    'two ledgers that continue under one key contradict each other, and an auditor who sees both finds a forged log.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const { fromHome: home, fromSchema: schema, json } = args.values;
    const copy = await reopenHome(await findLocation(name, { home, schema }, io));
    const text = copy === null ? `${name} was not copied` : `${name} is open again: never write to ${copy}`;
    await io.stdout.write(json ? jsonLine({ reopened: copy !== null, copy }) : `${escapeText(text)}\n`);
    return 0;
  },
});
