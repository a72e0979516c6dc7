import { nameInLedger } from '../../../core/contract/entry-name.js';
import { resolve } from 'node:path';
import { policySource } from '../../../home/policy/home-policy.js';
import { restoreHome, type RestoreReport } from '../restore-home.js';
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
import { configuredRegistrations, findContractFolder, homeOf } from '../../../interfaces/cli/options/folders.js';
import { PATH_TYPE } from '../../../interfaces/cli/option-types.js';
import { PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { printVerdict, VERDICT_CODES } from '../../../interfaces/cli/commands/ledger/ledger-verify-command.js';

const [ACTOR] = PERSON_OPTIONS;

const OPTIONS = [
  ACTOR,
  {
    name: 'keys',
    value: 'DIR',
    type: PATH_TYPE,
    help: 'the key folder of the ledger (default: the keys in the backup)',
  },
  {
    name: 'erasures',
    value: 'FILE',
    type: PATH_TYPE,
    help: 'the newest list of erasures (default with --keys: the one in that folder)',
  },
  { name: 'no-erasures', help: 'confirm: nothing was erased since the backup was made' },
  {
    name: 'head',
    value: 'FILE',
    type: PATH_TYPE,
    multiple: true,
    help: 'a head file or checkpoint of the lost ledger; may be repeated',
  },
  { name: 'no-sandbox', help: 'do not restore the files of the sandbox' },
  { name: 'no-replay', help: 'verify the ledger without replaying the state machines' },
] as const satisfies readonly CommandOption[];

/** `turnpike restore`: makes a home from a backup, and records what was lost. */
export const restore: CliCommand = defineCommand({
  name: 'restore',
  access: 'write',
  summary: 'Restore a backup into a new home directory; suspend execution until `restore acknowledge`',
  operands: { usage: 'DIR', min: 1, max: 1 },
  options: OPTIONS,
  notes: [
    'Refuses a backup that is unfinished or was changed. The home directory must be missing or empty. What the list of',
    'erasures names is erased again. The outcome of every unfinished effect becomes unknown, and an entry names what was',
    'lost: from the end of the backup to the newest head that --head names. Effects may have happened after the backup,',
    'so nothing is executed until an operator has run `turnpike restore acknowledge`. Exits as `ledger verify` does.',
  ],
  run: (args, io) => exitOneIfTampered(io, () => run(args, io)),
});

async function run(args: ArgumentsOf<typeof OPTIONS>, io: Io): Promise<ExitCode> {
  const { actor, keys = null, erasures: file, noErasures, head: heads, noSandbox, noReplay, json } = args.values;
  if (file !== undefined && noErasures) throw args.usageError('--erasures and --no-erasures exclude each other');
  const registrations = await configuredRegistrations(args, io);
  const report = await restoreHome({
    backup: resolve(io.cwd, args.operands[0] ?? ''),
    home: homeOf(args, io).home,
    keys,
    erasures: noErasures ? 'none' : file === undefined ? null : { file },
    heads,
    sandbox: !noSandbox,
    replay: !noReplay,
    policies: policySource(findContractFolder(args, io).path),
    ...(registrations === null ? {} : { registrations }),
    actor,
    log: io.log,
    progress: progressFor(args, io),
  });
  if (json) await io.stdout.write(jsonLine(report));
  else {
    await printVerdict(report.verdict, false, args, io);
    for (const line of linesOf(report)) await io.stdout.write(`${escapeText(line)}\n`);
  }
  return VERDICT_CODES[report.verdict.verdict];
}

function linesOf({
  home,
  kept,
  lost,
  erased,
  unended,
  recovery,
  verdict,
  ...record
}: RestoreReport): readonly string[] {
  if (verdict.verdict === 'refused') return [`${home} is not restored: the ledger does not verify`];
  return [
    `restored ${kept.size} entries in ${home}: restore ${record.lineage} of this ledger, recorded in ${record.tree_id}`,
    lostLine(kept.size, lost),
    `${countText(recovery.settled, 'effect')} settled as unknown, ${countText(recovery.interrupted, 'agent run')} interrupted`,
    ...(erased.length === 0 ? [] : [`erased again: ${erased.join(', ')}`]),
    ...(unended.length === 0 ? [] : [`cannot end, because their content is erased: ${unended.join(', ')}`]),
    'nothing is executed until `turnpike restore acknowledge`',
  ];
}

function lostLine(kept: number, lost: RestoreReport['lost']): string {
  if (lost === null) return 'lost: unknown, because no head of the lost ledger was named';
  if (lost.size <= kept) return 'lost: no later entry is known';
  return `lost: entries ${nameInLedger(kept)} to ${nameInLedger(lost.size - 1)}, and possibly later ones`;
}
