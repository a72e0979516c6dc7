import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../../system/system-clock.js';
import { backupHome, type BackupReport } from '../backup-home.js';
import { readPackageVersion } from '../../../system/package-version.js';
import {
  defineCommand,
  type ArgumentsOf,
  type CliCommand,
  type CommandArguments,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { findContractFolder, homeOf } from '../../../interfaces/cli/options/folders.js';
import { findSharedHome, STORE_OPTION } from '../../../interfaces/cli/store/shared-home.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { printVerdict, VERDICT_CODES } from '../../../interfaces/cli/commands/ledger/ledger-verify-command.js';

const OPTIONS = [
  { name: 'with-keys', help: 'include the keys: a reader of the backup can then read all content' },
  { name: 'no-sandbox', help: 'do not include the files of the sandbox' },
  { name: 'no-replay', help: 'verify the backup without replaying the state machines' },
  STORE_OPTION,
] as const satisfies readonly CommandOption[];

/** `turnpike backup`: copies a ledger that may be in use, and verifies the copy. */
export const backup: CliCommand = defineCommand({
  name: 'backup',
  access: 'write',
  summary: 'Back up the ledger, also while it is served, and verify the backup',
  operands: { usage: 'DIR', min: 1, max: 1 },
  options: OPTIONS,
  notes: [
    'DIR must be missing or empty, or have an unfinished backup, which starts over. The command reads one moment of the',
    'ledger while another process may write it; that process does not wait. The manifest is written last, so a backup',
    'that was interrupted is never taken for a finished one. Without --with-keys a restore needs the key folder.',
    'Exits as `ledger verify` does. `turnpike restore` restores it.',
  ],
  run: (args, io) => exitOneIfTampered(io, () => run(args, io)),
});

async function run(args: ArgumentsOf<typeof OPTIONS>, io: Io): Promise<ExitCode> {
  const { withKeys, noSandbox, noReplay, json } = args.values;
  const paths = homeOf(args, io);
  const shared = findSharedHome(paths, args);
  const contract = findContractFolder(args, io);
  const report = await backupHome({
    from: { paths, postgres: shared === null ? null : { url: shared.url, schema: shared.stored.schema } },
    to: resolve(io.cwd, args.operands[0] ?? ''),
    contract: contract.isChosen && existsSync(contract.path) ? contract.path : null,
    keys: withKeys,
    sandbox: !noSandbox,
    replay: !noReplay,
    madeBy: readPackageVersion(),
    progress: progressFor(args, io),
    madeAt: new Date(systemClock().now()).toISOString(),
  });
  if (json) await io.stdout.write(jsonLine(report));
  else await print(report, args, io);
  return VERDICT_CODES[report.verdict.verdict];
}

async function print({ to, manifest, verdict }: BackupReport, args: CommandArguments, io: Io): Promise<void> {
  await printVerdict(verdict, false, args, io);
  const lines =
    manifest === null
      ? [`${to} is not a backup: the ledger does not verify`]
      : [
          `backed up ${manifest.size} entries and ${countText(manifest.files, 'file')} in ${to}`,
          manifest.has_keys
            ? 'the backup contains the keys: keep it as secret as they are'
            : 'the backup contains no keys: back up the key folder in another place',
        ];
  for (const line of lines) await io.stdout.write(`${escapeText(line)}\n`);
}
