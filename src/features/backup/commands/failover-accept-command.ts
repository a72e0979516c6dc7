import { nameInLedger } from '../../../core/contract/entry-name.js';
import { lockFolder } from '../../../stores/sqlite/writer-lock.js';
import { nanoidIds } from '../../../system/nanoid-ids.js';
import { policySource } from '../../../home/policy/home-policy.js';
import { usageError } from '../../../core/errors.js';
import { acceptFailover, type AcceptedFailover } from '../accept-failover.js';
import { defineCommand, NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import { findContractFolder, homeOf } from '../../../interfaces/cli/options/folders.js';
import { OPERATOR_OPTIONS, operatorOf } from '../../../interfaces/cli/options/person-options.js';
import {
  findSharedHome,
  openSharedStore,
  HEADS_OPTION,
  STORE_OPTION,
} from '../../../interfaces/cli/store/shared-home.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const [ACTOR, ROLE, LANE] = OPERATOR_OPTIONS;

/** `turnpike failover accept`: goes on with a shared ledger that has lost entries. */
export const failoverAccept: CliCommand = defineCommand({
  name: 'failover accept',
  access: 'write',
  summary: 'Accept that a failover has lost entries: record which, and suspend all effects',
  operands: NO_OPERANDS,
  options: [
    ACTOR,
    ROLE,
    LANE,
    { name: 'yes', help: 'confirm: the lost entries are not in any other copy of the database' },
    STORE_OPTION,
    HEADS_OPTION,
  ],
  notes: [
    'For a database that is behind the heads of its workers, after an asynchronous standby took over. Stop all workers,',
    'run the command in one home directory of the ledger, and then in each other one, where it only lets that worker',
    'continue. Nothing is executed until `turnpike restore acknowledge`. The heads of the lost log are kept as files.',
    'Policy can deny it, by conditions of the action "restore" and the lanes that list ledger.restore. An approval for',
    'restore is asked for at the acknowledgement: until the loss is recorded, no worker takes votes.',
  ],
  async run(args, io) {
    const operator = operatorOf(args.values);
    if (!args.values.yes) throw args.usageError('the ledger goes on without the lost entries: confirm with --yes');
    const paths = homeOf(args, io);
    const shared = findSharedHome(paths, args);
    if (shared === null) throw usageError(`${paths.home} does not name a database: only that can fail over`);
    const policies = policySource(findContractFolder(args, io).path);
    const lock = lockFolder(paths.state);
    try {
      const store = await openSharedStore(shared, { alone: true });
      try {
        const accepted = await acceptFailover({ store, paths, policies, operator, ids: nanoidIds(), log: io.log });
        const text = linesOf(accepted).map((line) => `${escapeText(line)}\n`);
        await io.stdout.write(args.values.json ? jsonLine(accepted) : text.join(''));
        return 0;
      } finally {
        await store.close();
      }
    } finally {
      lock.release();
    }
  },
});

function linesOf({ kept, lost, lineage, tree_id, isNew, evidence }: AcceptedFailover): readonly string[] {
  const range = `entries ${nameInLedger(kept.size)} to ${nameInLedger(lost.size - 1)}`;
  return [
    `lost: ${range}, after root ${kept.root}; the lost log ended with root ${lost.root}`,
    isNew ? `recorded in ${tree_id} as restore ${lineage}` : `recorded before, in ${tree_id}: this worker may continue`,
    ...(evidence.length === 0 ? [] : [`kept as evidence: ${evidence.join(', ')}`]),
    'nothing is executed until `turnpike restore acknowledge`',
  ];
}
