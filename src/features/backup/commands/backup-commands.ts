import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../../system/system-clock.js';
import { backupHome, type BackupReport } from '../backup-home.js';
import { readPackageVersion } from '../../../system/package-version.js';
import {
  defineCommand,
  NO_OPERANDS,
  type ArgumentsOf,
  type CliCommand,
  type CommandArguments,
  type CommandGroup,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { findContractFolder, homeOf, configuredRegistrations } from '../../../interfaces/cli/options/folders.js';
import {
  findSharedHome,
  STORE_OPTION,
  openSharedStore,
  HEADS_OPTION,
  type SharedHome,
} from '../../../interfaces/cli/store/shared-home.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import type { LedgerVerdict } from '../../../core/ledger/verification/ledger-verdict.js';
import { printVerdict, VERDICT_EXIT_CODES } from '../../../interfaces/cli/commands/ledger/ledger-verify-command.js';
import { nameInLedger } from '../../../core/contract/entry-name.js';
import { policySource } from '../../../home/policy/home-policy.js';
import { restoreHome, type RestoreReport } from '../restore-home.js';
import { PATH_TYPE } from '../../../interfaces/cli/option-types.js';
import { OPERATOR_OPTIONS, operatorOf, PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { acknowledgeRestores, openEngine, unconfirmedGrants } from '../record-restore.js';
import { openHead, openHome, type HomePaths, type HomeStores } from '../../../home/home.js';
import { lockFolder } from '../../../stores/sqlite/writer-lock.js';
import { checkConfirmed, type ConfirmedGrants, type RestoredGrants } from '../restored-grants.js';
import { nanoidIds } from '../../../system/nanoid-ids.js';
import { createCatalogue } from '../../../core/contract/policy/catalogue.js';
import { readRestoreHistory } from '../../../engine/restore-history.js';
import type { TreeEngine } from '../../../engine/tree-engine.js';
import { registrationsInLedger } from '../../../runtime/effects/ledger-registrations.js';
import { executeGoverned, type Operator } from '../../../runtime/operator-acts.js';
import { PolicyCache } from '../../../runtime/policy-cache.js';
import { usageError } from '../../../core/errors.js';
import { acceptFailover, type AcceptedFailover } from '../accept-failover.js';
import { copyHome, reopenHome, type CopyReport } from '../copy/copy-home.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { resolveLocation, type LedgerLocation } from '../../../home/ledger-location.js';
import { refuseTrackedKeys } from '../../../home/tracked-keys.js';

const BACKUP_OPTIONS = [
  { name: 'with-keys', help: 'include the keys: a reader of the backup can then read all content' },
  { name: 'no-sandbox', help: 'do not include the files of the sandbox' },
  { name: 'no-replay', help: 'verify the backup without replaying the state machines' },
  STORE_OPTION,
] as const satisfies readonly CommandOption[];

/** `turnpike backup`: copies a ledger that may be in use, and verifies the copy. */
const backup: CliCommand = defineCommand({
  name: 'backup',
  access: 'write',
  summary: 'Back up the ledger, also while it is served, and verify the backup',
  operands: { usage: 'DIR', min: 1, max: 1 },
  options: BACKUP_OPTIONS,
  notes: [
    'DIR must be missing or empty, or have an unfinished backup, which starts over. The command reads one moment of the',
    'ledger while another process may write it; that process does not wait. The manifest is written last, so a backup',
    'that was interrupted is never taken for a finished one. Without --with-keys a restore needs the key folder.',
    'Exits as `ledger verify` does. `turnpike restore` restores it.',
  ],
  run: (args, io) => exitOneIfTampered(io, () => backUp(args, io)),
});

async function backUp(args: ArgumentsOf<typeof BACKUP_OPTIONS>, io: Io): Promise<ExitCode> {
  const { withKeys, noSandbox, noReplay } = args.values;
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
  return printReport(report, backupLines(report), args, io);
}

const backupLines = ({ to, manifest }: BackupReport): readonly string[] =>
  manifest === null
    ? [`${to} is not a backup: the ledger does not verify`]
    : [
        `backed up ${manifest.size} entries and ${countText(manifest.files, 'file')} in ${to}`,
        manifest.has_keys
          ? 'the backup contains the keys: keep it as secret as they are'
          : 'the backup contains no keys: back up the key folder in another place',
      ];

/** Prints what was copied and verified: with --json the report, else its verdict and lines. @returns the exit code */
async function printReport(
  report: { readonly verdict: LedgerVerdict },
  lines: readonly string[],
  args: CommandArguments,
  io: Io,
): Promise<ExitCode> {
  const { verdict } = report;
  if (args.values.json) {
    await io.stdout.write(jsonLine(report));
    return VERDICT_EXIT_CODES[verdict.verdict];
  }
  const code = await printVerdict(verdict, false, args, io);
  for (const line of lines) await io.stdout.write(`${escapeText(line)}\n`);
  return code;
}

const RESTORE_OPTIONS = [
  PERSON_OPTIONS[0],
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
const restore: CliCommand = defineCommand({
  name: 'restore',
  access: 'write',
  summary: 'Restore a backup into a new home directory; suspend execution until `restore acknowledge`',
  operands: { usage: 'DIR', min: 1, max: 1 },
  options: RESTORE_OPTIONS,
  notes: [
    'Refuses a backup that is unfinished or was changed. The home directory must be missing or empty. What the list of',
    'erasures names is erased again. The outcome of every unfinished effect becomes unknown, and an entry names what was',
    'lost: from the end of the backup to the newest head that --head names. Effects may have happened after the backup,',
    'so nothing is executed until an operator has run `turnpike restore acknowledge`. Exits as `ledger verify` does.',
  ],
  run: (args, io) => exitOneIfTampered(io, () => restoreBackup(args, io)),
});

async function restoreBackup(args: ArgumentsOf<typeof RESTORE_OPTIONS>, io: Io): Promise<ExitCode> {
  const { actor, keys = null, erasures: file, noErasures, head: heads, noSandbox, noReplay } = args.values;
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
  return printReport(report, restoreLines(report), args, io);
}

function restoreLines({
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

/** `turnpike restore acknowledge`: lets a restored ledger execute effects again. */
const restoreAcknowledge: CliCommand = defineCommand({
  name: 'restore acknowledge',
  access: 'write',
  summary: 'Acknowledge a restore: effects are executed again',
  operands: NO_OPERANDS,
  options: [
    ...OPERATOR_OPTIONS,
    { name: 'yes', help: 'confirm: the effects that may have happened after the backup were checked' },
    { name: 'approval', value: 'DIGEST', multiple: true, help: 'confirm a restored approval: it may be used' },
    { name: 'counter', value: 'NAME', multiple: true, help: 'confirm a restored counter: what it allows may happen' },
    STORE_OPTION,
    HEADS_OPTION,
  ],
  notes: [
    'First find out what happened after the backup: in the systems that tools and records reach, and in the sandbox. A',
    'caller that repeats a request of the lost entries executes it again, because the ledger does not know its',
    'idempotency key any more. No other process may have the home directory open. The command shows each approval that',
    'was restored unused and each counter with its restored values, and does nothing until each is confirmed. Policy',
    'decides too: conditions of the action "restore", an approval for restore, and the lanes that list ledger.restore.',
  ],
  async run(args, io) {
    const { yes, approval, counter, json } = args.values;
    const operator = operatorOf(args.values);
    if (!yes) throw args.usageError('effects can happen a second time after this: confirm with --yes');
    const confirmed = { approvals: [...approval], counters: [...counter] };
    const paths = homeOf(args, io);
    const shared = findSharedHome(paths, args);
    const ledger = await openLedger(paths, shared);
    const engine = openEngine(ledger.store, ledger.externalHeadStore, io.log);
    try {
      await engine.start();
      const grants = await unconfirmedGrants(ledger.store);
      await showGrants(grants, io);
      if (grants !== null) checkConfirmed(grants, confirmed);
      const trees = await acknowledge(ledger, engine, { operator, confirmed }, { args, io });
      const text =
        trees.length === 0
          ? 'no restore waits to be acknowledged'
          : `acknowledged, recorded in ${trees.join(', ')}: effects run again`;
      await io.stdout.write(json ? jsonLine({ acknowledged: trees }) : `${escapeText(text)}\n`);
      return 0;
    } finally {
      await engine.stop();
      await ledger.store.close();
      await ledger.externalHeadStore.close();
      ledger.release();
    }
  },
});

/** Policy decides first, whether the ledger may execute effects again. */
async function acknowledge(
  { store }: OpenedLedger,
  engine: TreeEngine,
  { operator, confirmed }: { readonly operator: Operator; readonly confirmed: ConfirmedGrants },
  { args, io }: { readonly args: CommandArguments; readonly io: Io },
): Promise<readonly string[]> {
  const { unacknowledged } = await readRestoreHistory(store);
  if (unacknowledged === null) return [];
  const registrations = (await configuredRegistrations(args, io)) ?? (await registrationsInLedger(store));
  const source = policySource(findContractFolder(args, io).path);
  const policyCache = new PolicyCache(source, systemClock(), createCatalogue(registrations));
  const details = { restore: unacknowledged, approvals: confirmed.approvals, counters: confirmed.counters };
  const request = { action: 'RESTORE_LEDGER', cases: [], details } as const;
  return executeGoverned({ engine, store, policyCache, ids: nanoidIds() }, operator, request, () =>
    acknowledgeRestores(engine, store, operator.actor, confirmed),
  );
}

/** On the error output: the result is for programs. */
async function showGrants(grants: RestoredGrants | null, { stderr }: Io): Promise<void> {
  for (const { name, case_id, digest, run_id, requested_by, votes, expires_at } of grants?.approvals ?? []) {
    const by = votes.map(({ actor_id }) => actor_id).join(', ');
    const what = `${name}${case_id === null ? '' : ` in case ${case_id}`}, requested by ${requested_by} in ${run_id}`;
    await stderr.writeLine(escapeText(`approval ${digest}: ${what}, approved by ${by}, usable until ${expires_at}`));
  }
  for (const { name, values } of grants?.counters ?? []) {
    const counted = values.map(({ key, total }) => `${key} = ${total}`).join(', ');
    await stderr.writeLine(escapeText(`counter ${name}: ${counted === '' ? 'nothing counted' : counted}`));
  }
}

interface OpenedLedger extends Pick<HomeStores, 'store' | 'externalHeadStore'> {
  readonly release: () => void;
}

/** Opens the ledger for writing, in a process that has the home to itself. */
async function openLedger(paths: HomePaths, shared: SharedHome | null): Promise<OpenedLedger> {
  if (shared === null) return { ...openHome(paths, { readOnly: false }), release: () => undefined };
  const lock = lockFolder(paths.state);
  try {
    const { externalHeadStore } = openHead(paths, { readOnly: false });
    return { store: await openSharedStore(shared), externalHeadStore, release: () => lock.release() };
  } catch (error) {
    lock.release();
    throw error;
  }
}

const [OPERATOR, OPERATOR_ROLE, OPERATOR_LANE] = OPERATOR_OPTIONS;

/** `turnpike failover accept`: goes on with a shared ledger that has lost entries. */
const failoverAccept: CliCommand = defineCommand({
  name: 'failover accept',
  access: 'write',
  summary: 'Accept that a failover has lost entries: record which, and suspend all effects',
  operands: NO_OPERANDS,
  options: [
    OPERATOR,
    OPERATOR_ROLE,
    OPERATOR_LANE,
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
        const text = failoverLines(accepted).map((line) => `${escapeText(line)}\n`);
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

function failoverLines({ kept, lost, lineage, tree_id, isNew, evidence }: AcceptedFailover): readonly string[] {
  const range = `entries ${nameInLedger(kept.size)} to ${nameInLedger(lost.size - 1)}`;
  return [
    `lost: ${range}, after root ${kept.root}; the lost log ended with root ${lost.root}`,
    isNew ? `recorded in ${tree_id} as restore ${lineage}` : `recorded before, in ${tree_id}: this worker may continue`,
    ...(evidence.length === 0 ? [] : [`kept as evidence: ${evidence.join(', ')}`]),
    'nothing is executed until `turnpike restore acknowledge`',
  ];
}

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
const homeCopy: CliCommand = defineCommand({
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
  const { fromHome, fromSchema, toHome, toSchema, noSandbox, noReplay, keepSource } = args.values;
  const [from = '', to = ''] = args.operands;
  const report = await copyHome({
    from: await findLocation(from, { home: fromHome, schema: fromSchema }, io),
    to: await findLocation(to, { home: toHome, schema: toSchema }, io),
    sandbox: !noSandbox,
    replay: !noReplay,
    keepSource,
    progress: progressFor(args, io),
  });
  return printReport(report, copyLines(report, keepSource), args, io);
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

const copyLines = ({ from, to, entries, trees, verdict }: CopyReport, isKept: boolean): readonly string[] =>
  verdict.verdict === 'refused'
    ? [`${to} stays an unfinished copy: verify ${from}, repair it, and copy again`]
    : [
        `copied ${entries} entries of ${countText(trees, 'run tree')} from ${from} to ${to}`,
        isKept ? 'use only one of the two from now on' : `${from} is not opened for writing any more: use the copy`,
      ];

/** `turnpike home reopen`: lets a ledger be written again that was copied. */
const homeReopen: CliCommand = defineCommand({
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

export const BACKUP_COMMANDS: readonly CommandGroup[] = [
  { title: 'services', commands: [failoverAccept, homeCopy, homeReopen] },
  { title: 'backups and keys', commands: [backup, restore, restoreAcknowledge] },
];
