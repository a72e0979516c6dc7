// Finds the home directory and the contract folder of a command.

import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { gitPolicySource } from '../../../home/policy/git-policy-source.js';
import { hasIdentities, identitiesSource, policySource } from '../../../home/policy/home-policy.js';
import { sqliteHistoryCache } from '../../../stores/sqlite/sqlite-history-cache.js';
import { historyReader } from '../../../stores/sqlite/sqlite-history-cache.js';
import { folderLockOf } from '../../../stores/sqlite/writer-lock.js';
import {
  createCatalogue,
  NO_REGISTRATIONS,
  findRegistrationProblem,
  Registrations,
} from '../../../core/contract/policy/catalogue.js';
import { mapOptional, type ForPolicyFiles } from '../../../core/contract/policy/pins.js';
import { isConforming } from '../../../core/contract/validators.js';
import { CodedError, PolicyError, usageError } from '../../../core/errors.js';
import { checkIdentities } from '../../../home/policy/check-identities.js';
import { loadFeaturesOfPolicy } from '../../../core/contract/run/feature-vocabulary.js';
import { checkPolicy, formatFinding, type PolicyCheck } from '../../../core/policy/files/check-policy.js';
import type { LintMessage, PolicyLinter } from '../../../home/policy/policy-linter.js';
import { FEATURES } from '../../../features/declare-features.js';
import type { LoadedIdentities, LoadedPolicyFile } from '../../../engine/ports/policy-sources.js';
import { isVacant, openHome, type HomePaths, type HomeStores } from '../../../home/home.js';
import { locateHome } from '../../../home/store-home.js';
import { registrationsInLedger } from '../../../runtime/effects/ledger-registrations.js';
import { countReads } from '../../../runtime/ledger/count-reads.js';
import { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import { shippedContract } from '../../../runtime/shipped-contract.js';
import type { CommandArguments, CommandOption } from '../command.js';
import type { Io } from '../io.js';
import { progressFor } from '../progress-bar.js';
import { findSharedHome, openSharedReader } from '../store/shared-home.js';
import { readJsonFile } from '../payloads.js';
import { countText } from '../text/terminal.js';

export const HOME_DEFAULT = '.turnpike';
export const CONTRACT_DEFAULT = 'contract';

/** The home directory that the arguments name, whether it exists or not. */
export const homeOf = (args: CommandArguments, io: Io): HomePaths =>
  locateHome(resolve(io.cwd, args.values.home ?? HOME_DEFAULT));

/** A contract folder, and whether the user chose it, by option or by a folder in the working directory. */
export interface ContractFolder {
  readonly path: string;
  readonly isChosen: boolean;
}

export function findContractFolder(args: CommandArguments, io: Io): ContractFolder {
  const option = args.values.contract;
  if (option !== undefined) return { path: resolve(io.cwd, option), isChosen: true };
  const here = resolve(io.cwd, CONTRACT_DEFAULT);
  return existsSync(here) ? { path: here, isChosen: true } : { path: shippedContract(), isChosen: false };
}

/** What a progress bar says while a ledger is read. */
const READING = 'reading the ledger';

/** A ledger that was opened for reading only. */
export interface OpenLedger extends HomeStores {
  readonly reader: LedgerReader;
}

/**
 * Opens the ledger of a home directory for reading, also while another process writes to it, and closes it after
 * `work`. Changes no file of the home directory, unless it may store replay points.
 */
export async function withLedger<T>(
  args: CommandArguments,
  io: Io,
  work: (ledger: OpenLedger) => Promise<T>,
  { storePoints = false }: { readonly storePoints?: boolean } = {},
): Promise<T> {
  const home = homeOf(args, io);
  const shared = findSharedHome(home, args);
  const progress = progressFor(args, io);
  progress.begin({ label: READING, unit: 'entries', total: null });
  const opened = shared === null ? openHome(home, { readOnly: true }) : await openSharedReader(shared);
  const { externalHeadStore } = opened;
  const store = countReads(opened.store, progress, { label: READING });
  const lockOf = shared === null ? home.ledger : folderLockOf(home.state);
  const history = storePoints ? sqliteHistoryCache(home.history) : historyReader(home.history, lockOf);
  try {
    return await work({ store, externalHeadStore, reader: new LedgerReader(store, externalHeadStore, { history }) });
  } finally {
    progress.end();
    await history.close();
    await store.close();
  }
}

interface LoadOptions {
  readonly pins?: 'any' | 'git';
  readonly registrations?: Registrations;
  readonly actions?: string;
}

export interface LoadedPolicy {
  readonly files: ForPolicyFiles<LoadedPolicyFile>;
  /** identities.yaml; null without. */
  readonly identities: LoadedIdentities | null;
  readonly check: PolicyCheck;
  /** The errors and warnings of linters for a policy that is otherwise valid. */
  readonly cautions: readonly LintMessage[];
}

/** The registrations of a service, for a policy that lists its actions, tools or targets. */
export const REGISTRATIONS_OPTION = {
  name: 'registrations',
  value: 'FILE',
  help: 'JSON of what the service registers (default: what the ledger has registered)',
} as const satisfies CommandOption;

/**
 * What services register: the file that the arguments or the configuration name, or what the ledger has registered.
 * @throws UsageError for registrations that no service could make
 */
export async function readRegistrations(args: CommandArguments, io: Io): Promise<Registrations> {
  return (await configuredRegistrations(args, io)) ?? (await ledgerRegistrations(args, io));
}

/** None if there is no ledger, or it cannot be read now. */
async function ledgerRegistrations(args: CommandArguments, io: Io): Promise<Registrations> {
  if (isVacant(homeOf(args, io).home)) return NO_REGISTRATIONS;
  try {
    // Without a progress bar: it is a part of what the command does.
    const home = homeOf(args, io);
    const shared = findSharedHome(home, args);
    const { store, externalHeadStore } =
      shared === null ? openHome(home, { readOnly: true }) : await openSharedReader(shared);
    try {
      return await registrationsInLedger(store);
    } finally {
      await externalHeadStore.close();
      await store.close();
    }
  } catch (error) {
    if (error instanceof CodedError) return NO_REGISTRATIONS;
    throw error;
  }
}

/** @returns null if neither the arguments nor the configuration name a file. @throws UsageError */
export async function configuredRegistrations(
  { values: { registrations: file } }: Pick<CommandArguments, 'values'>,
  io: Io,
): Promise<Registrations | null> {
  if (file === undefined) return null;
  const found = await readJsonFile(file, '--registrations', io);
  if (!isConforming(Registrations, found))
    throw usageError('--registrations: the file does not match the schema of registrations');
  const registrations = found as unknown as Registrations;
  const problem = findRegistrationProblem(registrations);
  if (problem !== null) throw usageError(`--registrations: ${problem}`);
  return registrations;
}

/** Loads the policy of a contract folder with all findings; file names are relative to the working directory. */
export async function loadContract(
  { path }: ContractFolder,
  io: Io,
  { pins = 'any', registrations = NO_REGISTRATIONS, actions }: LoadOptions = {},
): Promise<LoadedPolicy> {
  const chosen = actions === undefined ? {} : { actions };
  const files = await (pins === 'git' ? gitPolicySource(path, chosen) : policySource(path, chosen)).load();
  const named = (file: LoadedPolicyFile) => ({ path: displayPath(file.path, io), bytes: file.bytes });
  const check = {
    lanes: named(files.lanes),
    roles: named(files.roles),
    actions: named(files.actions),
    ...mapOptional(files, named),
  };
  const catalogue = createCatalogue(registrations);
  await loadFeaturesOfPolicy(files);
  const checked = checkPolicy(check, catalogue);
  const identities = hasIdentities(path) ? await identitiesSource(path, pins).load() : null;
  const linters = await loadLinters();
  const cautions = linters.flatMap((linter) => linter.lintPolicy(check, catalogue));
  if (identities === null) return { files, identities, check: checked, cautions };
  const identitiesFile = { path: displayPath(identities.path, io), bytes: identities.bytes };
  const roles = checked.policy === null ? null : new Set(checked.policy.roles.keys());
  const { findings, identities: parsed } = checkIdentities(identitiesFile, roles);
  const whole = { findings: [...checked.findings, ...findings], policy: parsed === null ? null : checked.policy };
  const ofIdentities = linters.flatMap((linter) => linter.lintIdentities(identitiesFile, checked.policy));
  return { files, identities, check: whole, cautions: [...cautions, ...ofIdentities] };
}

/** The linters of the installed features. */
const loadLinters = (): Promise<readonly PolicyLinter[]> =>
  Promise.all(FEATURES.flatMap(({ linter }) => (linter === undefined ? [] : [linter()])));

/** A path relative to the working directory, if that is shorter. */
export function displayPath(path: string, io: Io): string {
  const from = relative(io.cwd, path);
  return from === '' || from.startsWith('..') ? path : from;
}

/**
 * The policy of a check.
 * @throws PolicyError POLICY_INVALID with its first findings
 */
export function requireValidPolicy({ policy, findings }: PolicyCheck): NonNullable<PolicyCheck['policy']> {
  if (policy !== null) return policy;
  const message = `the policy has ${countText(findings.length, 'finding')}:\n${findings.slice(0, 5).map(formatFinding).join('\n')}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}
