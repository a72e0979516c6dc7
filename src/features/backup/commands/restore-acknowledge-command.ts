import { acknowledgeRestores, openEngine, unconfirmedGrants } from '../record-restore.js';
import { openHead, openHome, type HomePaths, type HomeStores } from '../../../home/home.js';
import { lockFolder } from '../../../stores/sqlite/writer-lock.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandArguments } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { checkConfirmed, type ConfirmedGrants, type RestoredGrants } from '../restored-grants.js';
import { policySource } from '../../../home/policy/home-policy.js';
import { nanoidIds } from '../../../system/nanoid-ids.js';
import { systemClock } from '../../../system/system-clock.js';
import { createCatalogue } from '../../../core/contract/policy/catalogue.js';
import { readRestoreHistory } from '../../../engine/restore-history.js';
import type { TreeEngine } from '../../../engine/tree-engine.js';
import { registrationsInLedger } from '../../../runtime/effects/ledger-registrations.js';
import { executeGoverned, type Operator } from '../../../runtime/operator-acts.js';
import { PolicyCache } from '../../../runtime/policy-cache.js';
import { configuredRegistrations, findContractFolder, homeOf } from '../../../interfaces/cli/options/folders.js';
import { OPERATOR_OPTIONS, operatorOf } from '../../../interfaces/cli/options/person-options.js';
import {
  findSharedHome,
  openSharedStore,
  HEADS_OPTION,
  STORE_OPTION,
  type SharedHome,
} from '../../../interfaces/cli/store/shared-home.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike restore acknowledge`: lets a restored ledger execute effects again. */
export const restoreAcknowledge: CliCommand = defineCommand({
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
