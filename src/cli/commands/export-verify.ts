import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { openBagFolder } from '../../adapters/bag-folder.js';
import { openBagZip } from '../../adapters/bag-zip.js';
import type { BagTree } from '../../ports/bag-tree.js';
import type { BundleFinding } from '../../runtime/export/bundle-finding.js';
import type { BundleFacts, BundleReport } from '../../runtime/export/bundle-report.js';
import { verifyBundle } from '../../runtime/export/verify-bundle.js';
import type { Command, ExitCode } from '../command.js';
import { KEY_OPTION, keyOf } from '../evidence-file.js';
import type { Io } from '../io.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** `turnpike export verify`: is a bag complete, and every file in it what its manifests say? */
export const exportVerify: Command = {
  name: 'export verify',
  summary: 'Check that a bag is complete (BagIt 1.0), and that a bundle of Turnpike is what it says of itself',
  operands: { usage: 'BAG', min: 1, max: 1 },
  options: [KEY_OPTION],
  notes: [
    'BAG is a folder or a .zip. Needs no home and no ledger, fetches and changes nothing. Of a bundle that `export`',
    'made, also manifest, contents, runs and events are compared with one another, and with the log in it. With --key, the',
    'key must have signed that log. Any other bag is checked as a bag. Exits 1 when something is wrong with it (warnings',
    'alone do not count), and 4 when nothing is wrong and no named key vouches for the bundle.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const key = keyOf(args, io);
    const tree = await openBag(resolve(io.cwd, name));
    try {
      const report = await verifyBundle(tree, key);
      if (args.flag('json')) await io.stdout.write(jsonLine(report));
      else await print(report, io);
      return exitCodeOf(report, key !== null);
    } finally {
      await tree.close();
    }
  },
};

/** A bag that is no bundle can have no signature: with a key, the caller requires one. */
function exitCodeOf({ valid, authentication }: BundleReport, hasKey: boolean): ExitCode {
  if (!valid) return 1;
  if (authentication === null) return hasKey ? 4 : 0;
  return authentication.verdict === 'authenticated' ? 0 : 4;
}

async function print(report: BundleReport, { stdout }: Io): Promise<void> {
  for (const finding of report.findings) await stdout.write(`${escaped(lineOf(finding))}\n`);
  if (report.findings_dropped > 0) await stdout.write(`and ${counted(report.findings_dropped, 'more finding')}\n`);
  const { payload, version, algorithms, bundle, authentication } = report;
  if (bundle !== null) await stdout.write(`${escaped(bundleLine(bundle))}\n`);
  if (bundle !== null || authentication !== null) await stdout.write(`${escaped(vouchLine(authentication))}\n`);
  const what = `${counted(payload.files, 'file')}, ${counted(payload.bytes, 'byte')}`;
  const how = `BagIt ${version ?? '?'}, ${algorithms.join(', ')}`;
  await stdout.write(escaped(`${report.valid ? 'ok' : 'not valid'}: ${what}, ${how}`) + '\n');
}

const vouchLine = (authentication: BundleReport['authentication']): string =>
  authentication?.verdict === 'authenticated'
    ? `authenticated: ${authentication.key ?? ''} has signed that all of it is in its log`
    : `unauthenticated: ${authentication?.why ?? 'it is no bundle'}`;

const bundleLine = ({ bundle_id, artifacts, audit_events, runs }: BundleFacts): string =>
  `bundle ${bundle_id}: ${counted(artifacts, 'artifact')}, ${counted(audit_events, 'audit event')}, ` +
  counted(runs, 'run');

/** What is there and is no folder is taken for an archive, which says itself whether it is one. */
const openBag = async (path: string): Promise<BagTree> =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? openBagFolder(path) : openBagZip(path);

const lineOf = ({ severity, rule_id, path, message }: BundleFinding): string =>
  `${severity}: ${path === null ? '' : `${path}: `}${rule_id}: ${message}`;
