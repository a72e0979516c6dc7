import { resolve } from 'node:path';
import type { ExportOptions } from '../../runtime/high-risk/options.js';
import { quoted, wrong } from '../arguments.js';
import { NO_OPERANDS, type Args, type Command } from '../command.js';
import { homeOf } from '../folders.js';
import { withHome } from '../held-home.js';
import { required, seeThrough, starterOf, STARTER_OPTIONS } from '../people.js';

const KINDS: readonly NonNullable<ExportOptions['kind']>[] = [
  'internal_review',
  'discovery_production',
  'attorney_client_delivery',
  'court_filing_support',
  'expert_review',
  'backup_archive',
  'other',
];

/** `turnpike export`: everything that the ledger holds of a case, as a BagIt bag (S4 §10.2). */
export const exportCase: Command = {
  name: 'export',
  summary: 'Hand out what the ledger holds of a case, as a bag (BagIt 1.0)',
  operands: NO_OPERANDS,
  options: [
    ...STARTER_OPTIONS,
    { name: 'reason', value: 'TEXT', help: 'why, for the audit and the bag; up to 400 characters' },
    {
      name: 'to',
      value: 'PATH',
      help: 'where the bag shall be, below `exports` of the home: nothing may be there yet',
    },
    { name: 'zip', help: 'a .zip file instead of a folder' },
    { name: 'kind', value: 'KIND', help: `what it is for: ${KINDS[0] ?? ''} (the default), or another one` },
  ],
  notes: [
    `KIND is one of ${KINDS.slice(0, 4).join(', ')},`,
    `${KINDS.slice(4).join(', ')}. The ledger names the bag by its path below \`exports\`,`,
    'which may be a link to another folder. `turnpike export verify` checks the bag. The exit code is 0 when the bag',
    'is there, or waits for approval; else 1.',
  ],
  async run(args, io) {
    const options = {
      ...starterOf(exportCase, args),
      reason: required(exportCase, args, 'reason'),
      // Absolute: the process that has the home may stand elsewhere.
      destination: resolve(homeOf(args, io).state, 'exports', required(exportCase, args, 'to')),
      format: args.flag('zip') ? ('zip' as const) : ('folder' as const),
      kind: kindOf(args),
    };
    return withHome(args, io, async (home) => seeThrough(await home.export(options), args, io));
  },
};

function kindOf(args: Args): NonNullable<ExportOptions['kind']> {
  const text = args.text('kind') ?? 'internal_review';
  const kind = KINDS.find((name) => name === text);
  if (kind === undefined) throw wrong(exportCase, `--kind takes ${KINDS.join(', ')}, not ${quoted(text)}`);
  return kind;
}
