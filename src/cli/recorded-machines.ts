// The machine definitions that somebody names: by the hash that a ledger recorded, a run, a file, or the present ones.

import { machineDefinitions } from '../../machines/index.js';
import { FLAGS, flagsOf } from '../../machines/flags.js';
import type { JsonObject } from '../contract/json.js';
import { machinesFor } from '../kernel/pinned.js';
import { isDefinitions } from '../replay/machine-walk.js';
import { rootOf, type LedgerReader } from '../runtime/ledger-reader.js';
import type { Args } from './command.js';
import { contractOf, loadContract, soundPolicy, withLedger } from './folders.js';
import { usage, type Io } from './io.js';
import { jsonFile } from './json-argument.js';

const HASH_PREFIX = /^[0-9a-f]{6,64}$/u;

/** @throws UsageError for a name that means nothing here, or more than one */
export async function namedDefinitions(name: string, args: Args, io: Io): Promise<JsonObject> {
  const found: unknown = await valueOf(name, args, io);
  if (isDefinitions(found)) return found;
  throw usage(`${name} holds no machine definitions`);
}

async function valueOf(name: string, args: Args, io: Io): Promise<unknown> {
  if (name === 'current') {
    const policy = soundPolicy((await loadContract(contractOf(args, io), io)).check);
    return JSON.parse(machineDefinitions(machinesFor(policy), policy.catalogue, flagsOf(FLAGS)));
  }
  const isHash = HASH_PREFIX.test(name);
  if (!isHash && !/^(?:run|ses)_/u.test(name)) return jsonFile(name, 'machines diff', io);
  return withLedger(args, io, async ({ reader }) => {
    const hash = isHash ? await hashBy(name, reader) : await hashOfRun(name, reader);
    const bytes = await reader.systemArtifact(hash);
    if (bytes === null) throw usage(`the definitions ${hash} of ${name} are not in this ledger`);
    return JSON.parse(Buffer.from(bytes).toString()) as unknown;
  });
}

async function hashOfRun(run_id: string, reader: LedgerReader): Promise<string> {
  for await (const { text } of reader.tree(rootOf(run_id))) return pinnedIn(text) ?? unknown(run_id);
  return unknown(run_id);
}

/** The one recorded hash that begins like this. */
async function hashBy(prefix: string, reader: LedgerReader): Promise<string> {
  const found = new Set<string>();
  for await (const text of reader.openings()) {
    const hash = pinnedIn(text);
    if (hash?.startsWith(prefix) === true) found.add(hash);
  }
  const [hash, ...more] = found;
  if (hash === undefined) return unknown(prefix);
  if (more.length > 0) throw usage(`${prefix} may mean ${[...found].sort().join(' or ')}`);
  return hash;
}

const pinnedIn = (opening: string): string | null =>
  (JSON.parse(opening) as { readonly body?: { readonly machines?: { readonly hash_sha256?: string } } }).body?.machines
    ?.hash_sha256 ?? null;

function unknown(name: string): never {
  throw usage(`this ledger has no machine definitions of ${name}`);
}
