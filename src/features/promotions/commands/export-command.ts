import { resolve } from 'node:path';
import { defineCommand, NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import { locateExports } from '../../../home/store-home.js';
import { EXPORT_KINDS } from '../export-kinds.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { wordType } from '../../../interfaces/cli/option-types.js';
import { reportHighRiskRun, starterOf, STARTER_OPTIONS } from '../../../interfaces/cli/options/person-options.js';

/** `turnpike export`: exports all that the ledger records of a case as a BagIt bag (S4 §10.2). */
export const exportCase: CliCommand = defineCommand({
  name: 'export',
  access: 'write',
  summary: 'Export everything that the ledger records of a case, as a bag (BagIt 1.0)',
  operands: NO_OPERANDS,
  options: [
    ...STARTER_OPTIONS,
    {
      name: 'reason',
      value: 'TEXT',
      required: true,
      help: 'the reason, for the audit and the bag; up to 400 characters',
    },
    {
      name: 'to',
      required: true,
      value: 'PATH',
      help: 'the path of the bag below `exports` of the home directory; must not exist yet',
    },
    { name: 'zip', help: 'write a .zip file instead of a folder' },
    {
      name: 'kind',
      value: 'KIND',
      type: wordType(EXPORT_KINDS),
      default: EXPORT_KINDS[0],
      help: `the purpose of the export (default ${EXPORT_KINDS[0]})`,
    },
  ],
  notes: [
    `KIND is one of ${EXPORT_KINDS.slice(0, 4).join(', ')},`,
    `${EXPORT_KINDS.slice(4).join(', ')}. The ledger records the path of the bag below \`exports\`,`,
    'which may be a link to another folder. `turnpike export verify` checks the bag. The exit code is 0 if the bag was',
    'written or waits for approval, else 1.',
  ],
  async run(args, io) {
    const { reason, to, zip, kind } = args.values;
    const options = {
      ...starterOf(args),
      reason,
      // Absolute, because the process that owns the home may have another working directory.
      destination: resolve(locateExports(homeOf(args, io)), to),
      format: zip ? ('zip' as const) : ('folder' as const),
      kind,
    };
    return withHomeAccess(args, io, async (home) => {
      progressFor(args, io).begin({ label: 'exporting', unit: 'entries', total: null });
      return reportHighRiskRun(await home.turnpike.export(options), args, io);
    });
  },
});
