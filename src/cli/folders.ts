// Which home, and which contract, a command works on.

import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { gitPolicySource } from '../adapters/git-policy-source.js';
import { policySource } from '../adapters/policy-source.js';
import { sqliteHistoryCache } from '../adapters/sqlite-history-cache.js';
import { catalogueOf, NOTHING_REGISTERED, registrationProblem, Registrations } from '../contract/catalogue.js';
import type { PolicyFile } from '../contract/pins.js';
import { conforms } from '../contract/validators.js';
import { PolicyError } from '../errors.js';
import type { Caution } from '../policy/caution.js';
import { checkPolicy, findingLine, type PolicyCheck } from '../policy/check-policy.js';
import { lintPolicy } from '../policy/lint-policy.js';
import type { LoadedPolicyFile } from '../ports/policy-source.js';
import { homePaths, openHome, type HomePaths, type HomeStores } from '../runtime/home.js';
import { LedgerReader } from '../runtime/ledger-reader.js';
import { shippedContract } from '../runtime/shipped-contract.js';
import type { Args, Option } from './command.js';
import { usage, type Io } from './io.js';
import { jsonFile } from './json-argument.js';
import { counted } from './terminal.js';

export const HOME_DEFAULT = '.turnpike';
export const CONTRACT_DEFAULT = 'contract';

/** The home that the arguments name, whether it is there or not. */
export const homeOf = (args: Args, io: Io): HomePaths => homePaths(resolve(io.cwd, args.text('home') ?? HOME_DEFAULT));

/** A contract folder, and whether somebody chose it: by the option, or by having it here. */
export interface ContractFolder {
  readonly path: string;
  readonly chosen: boolean;
}

export function contractOf(args: Args, io: Io): ContractFolder {
  const asked = args.text('contract');
  if (asked !== undefined) return { path: resolve(io.cwd, asked), chosen: true };
  const here = resolve(io.cwd, CONTRACT_DEFAULT);
  return existsSync(here) ? { path: here, chosen: true } : { path: shippedContract(), chosen: false };
}

/** A ledger as somebody sees it who does not write. */
export interface OpenLedger extends HomeStores {
  readonly reader: LedgerReader;
}

/** Opens the ledger of a home for reading, whoever writes to it, and closes it after `work`. */
export async function withLedger<T>(args: Args, io: Io, work: (ledger: OpenLedger) => Promise<T>): Promise<T> {
  const home = homeOf(args, io);
  const { store, anchor } = openHome(home, { readOnly: true });
  const history = sqliteHistoryCache(home.history);
  try {
    return await work({ store, anchor, reader: new LedgerReader(store, anchor, { history }) });
  } finally {
    await history.close();
    await store.close();
  }
}

interface LoadOptions {
  readonly pins?: 'any' | 'git';
  readonly registrations?: Registrations;
  /** The file of actions. Default: `actions.yaml`. */
  readonly actions?: string;
}

export interface LoadedPolicy {
  readonly files: Readonly<Record<PolicyFile, LoadedPolicyFile>>;
  readonly check: PolicyCheck;
  /** What the linter says to a policy without findings. */
  readonly cautions: readonly Caution[];
}

/** What a service adds to the built-in actions, where a policy is looked at that lists it. */
export const REGISTRATIONS_OPTION: Option = {
  name: 'registrations',
  value: 'FILE',
  help: 'JSON of what the service registers: {"actions": [], "tools": [], "targets": []}',
};

/** @throws UsageError for what no service could register */
export async function registrationsOf(args: Args, io: Io): Promise<Registrations> {
  const file = args.text('registrations');
  if (file === undefined) return NOTHING_REGISTERED;
  const found = await jsonFile(file, '--registrations', io);
  if (!conforms(Registrations, found)) throw usage('--registrations: the file does not hold registrations');
  const registrations = found as unknown as Registrations;
  const problem = registrationProblem(registrations);
  if (problem !== null) throw usage(`--registrations: ${problem}`);
  return registrations;
}

/** The policy of a contract folder with everything that is wrong with it; files are named as seen from here. */
export async function loadContract(
  { path }: ContractFolder,
  io: Io,
  { pins = 'any', registrations = NOTHING_REGISTERED, actions }: LoadOptions = {},
): Promise<LoadedPolicy> {
  const chosen = actions === undefined ? {} : { actions };
  const files = await (pins === 'git' ? gitPolicySource(path, chosen) : policySource(path, chosen)).load();
  const named = (name: PolicyFile) => ({ path: shownPath(files[name].path, io), bytes: files[name].bytes });
  const check = { lanes: named('lanes'), roles: named('roles'), actions: named('actions') };
  const catalogue = catalogueOf(registrations);
  return { files, check: checkPolicy(check, catalogue), cautions: lintPolicy(check, catalogue) };
}

/** A path as one types it here, if that is shorter. */
export function shownPath(path: string, io: Io): string {
  const from = relative(io.cwd, path);
  return from === '' || from.startsWith('..') ? path : from;
}

/** The policy of a check. @throws PolicyError POLICY_INVALID with its first findings */
export function soundPolicy({ policy, findings }: PolicyCheck): NonNullable<PolicyCheck['policy']> {
  if (policy !== null) return policy;
  const message = `the policy has ${counted(findings.length, 'finding')}:\n${findings.slice(0, 5).map(findingLine).join('\n')}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}
