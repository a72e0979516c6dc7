import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { openBagFolder } from '../bag/bag-folder.js';
import { openBagZip } from '../bag/bag-zip.js';
import type { BagTree } from '../../../engine/ports/bag-tree.js';
import type { ExportBagFinding, ExportBagFacts, ExportBagReport } from '../verify/bag-report.js';
import { verifyExportBag } from '../verify/verify-export-bag.js';
import type { CliCommand, ExitCode, CommandGroup } from '../../../interfaces/cli/command.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { KEY_OPTIONS, readTrustedKey } from '../../../interfaces/cli/options/evidence-file.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';

/** `turnpike export verify`: checks that a bag is complete and every file matches its manifests. */
const exportVerify: CliCommand = {
  name: 'export verify',
  access: 'none',
  summary: 'Check that a bag is complete (BagIt 1.0), and that a Turnpike export matches its manifest and log',
  operands: { usage: 'BAG', min: 1, max: 1 },
  options: KEY_OPTIONS,
  notes: [
    'BAG is a folder or a .zip file. Needs no home directory and no ledger, fetches and changes nothing. For a bag',
    'that `turnpike export` made, the command also compares manifest, contents, runs and events with each other and',
    'with the log in it. With --key, that key must have signed the log. Any other bag is only checked as a bag. Exits',
    '1 if something is wrong (warnings do not count), and 4 if nothing is wrong but no trusted key has authenticated',
    'the export.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const key = readTrustedKey(args, io);
    const tree = countBagReads(await openBagTree(resolve(io.cwd, name)), progressFor(args, io));
    try {
      const report = await verifyExportBag(tree, key);
      if (args.values.json) await io.stdout.write(jsonLine(report));
      else await printReport(report, io);
      return exitCodeOf(report, key !== null);
    } finally {
      await tree.close();
    }
  },
};

/** A bag that is no export has no signature to verify; with a key, the caller requires one. */
function exitCodeOf({ valid, authentication }: ExportBagReport, hasKey: boolean): ExitCode {
  if (!valid) return 1;
  if (authentication === null) return hasKey ? 4 : 0;
  return authentication.verdict === 'authenticated' ? 0 : 4;
}

async function printReport(report: ExportBagReport, { stdout }: Io): Promise<void> {
  for (const finding of report.findings) await stdout.write(`${escapeText(lineOf(finding))}\n`);
  if (report.findings_dropped > 0) await stdout.write(`and ${countText(report.findings_dropped, 'more finding')}\n`);
  const { payload, version, algorithms, bundle, authentication } = report;
  if (bundle !== null) await stdout.write(`${escapeText(bundleLine(bundle))}\n`);
  if (bundle !== null || authentication !== null)
    await stdout.write(`${escapeText(authenticationLine(authentication))}\n`);
  const what = `${countText(payload.files, 'file')}, ${countText(payload.bytes, 'byte')}`;
  const how = `BagIt ${version ?? '?'}, ${algorithms.join(', ')}`;
  await stdout.write(escapeText(`${report.valid ? 'ok' : 'not valid'}: ${what}, ${how}`) + '\n');
}

const authenticationLine = (authentication: ExportBagReport['authentication']): string =>
  authentication?.verdict === 'authenticated'
    ? `authenticated: ${authentication.key ?? ''} has signed the log that contains all of it`
    : `unauthenticated: ${authentication?.why ?? 'the bag is not a Turnpike export'}`;

const bundleLine = ({ bundle_id, artifacts, audit_events, runs }: ExportBagFacts): string =>
  `bundle ${bundle_id}: ${countText(artifacts, 'artifact')}, ${countText(audit_events, 'audit event')}, ` +
  countText(runs, 'run');

/** Anything but a directory is opened as an archive, whose reader rejects other files. */
const openBagTree = async (path: string): Promise<BagTree> =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? openBagFolder(path) : openBagZip(path);

const LABEL = 'reading the bag';

/**
 * A bag that reports how many bytes were read from it. The total is that of all files once they are listed: a bag whose
 * log is verified too reads some of them twice.
 */
export function countBagReads(tree: BagTree, progress: ProgressReporter): BagTree {
  if (progress === NO_PROGRESS) return tree;
  return {
    entries: async function* () {
      progress.begin({ label: LABEL, unit: 'bytes', total: null });
      let total = 0;
      for await (const entry of tree.entries()) {
        if (entry.kind === 'file') total += entry.bytes;
        yield entry;
      }
      progress.begin({ label: LABEL, unit: 'bytes', total });
    },
    read: async function* (path) {
      for await (const piece of tree.read(path)) {
        progress.advance(piece.length);
        yield piece;
      }
    },
    close: () => tree.close(),
  };
}

const lineOf = ({ severity, rule_id, path, message }: ExportBagFinding): string =>
  `${severity}: ${path === null ? '' : `${path}: `}${rule_id}: ${message}`;

export const EXPORT_COMMANDS: readonly CommandGroup[] = [{ title: 'agents and runs', commands: [exportVerify] }];
