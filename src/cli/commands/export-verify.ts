import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { openBagFolder } from '../../adapters/bag-folder.js';
import { openBagZip } from '../../adapters/bag-zip.js';
import type { BagFinding } from '../../bagit/finding.js';
import { verifyBag } from '../../bagit/verify.js';
import type { BagTree } from '../../ports/bag-tree.js';
import type { Command } from '../command.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** `turnpike export verify`: is a bag complete, and every file in it what its manifests say? */
export const exportVerify: Command = {
  name: 'export verify',
  summary: 'Check that a bag is complete, and every file in it what its manifests say: BagIt 1.0',
  operands: { usage: 'BAG', min: 1, max: 1 },
  options: [],
  notes: [
    'BAG is a folder or a .zip. Needs no home and no ledger, fetches and changes nothing. Exits 1 when something is',
    'wrong with it; warnings alone do not count.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const tree = await openBag(resolve(io.cwd, name));
    try {
      const report = await verifyBag(tree);
      if (args.flag('json')) {
        await io.stdout.write(jsonLine(report));
      } else {
        for (const finding of report.findings) await io.stdout.write(`${escaped(lineOf(finding))}\n`);
        if (report.findings_dropped > 0)
          await io.stdout.write(`and ${counted(report.findings_dropped, 'more finding')}\n`);
        const { payload, version, algorithms } = report;
        const what = `${counted(payload.files, 'file')}, ${counted(payload.bytes, 'byte')}`;
        const how = `BagIt ${version ?? '?'}, ${algorithms.join(', ')}`;
        await io.stdout.write(escaped(`${report.valid ? 'ok' : 'not valid'}: ${what}, ${how}`) + '\n');
      }
      return report.valid ? 0 : 1;
    } finally {
      await tree.close();
    }
  },
};

/** What is there and is no folder is taken for an archive, which says itself whether it is one. */
const openBag = async (path: string): Promise<BagTree> =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? openBagFolder(path) : openBagZip(path);

const lineOf = ({ severity, rule_id, path, message }: BagFinding): string =>
  `${severity}: ${path === null ? '' : `${path}: `}${rule_id}: ${message}`;
