// Finds machine definitions by name: a recorded hash, a run, a file, or the present definitions.

import { usageError } from '../../../core/errors.js';
import { type JsonObject, parseOwnJson } from '../../../core/contract/json.js';
import { loadAllFeatures } from '../../../core/contract/run/feature-vocabulary.js';
import { definitionsOf, newTreeFlags } from '../../../kernel/pinned-policy.js';
import { installedFeatures } from '../../../kernel/tree-feature.js';
import { isDefinitions } from '../../../kernel/replay/walk-machine.js';
import { type LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';
import type { CommandArguments } from '../command.js';
import { findContractFolder, loadContract, requireValidPolicy, withLedger } from './folders.js';
import { type Io } from '../io.js';
import { readJsonFile } from './json-argument.js';

const HASH_PREFIX = /^[0-9a-f]{6,64}$/u;

/**
 * Both definitions of a comparison. A tree pins the root machine of the feature that opened it and no other one, so the
 * present definitions have those that the other side has.
 * @throws UsageError for an unknown or ambiguous name
 */
export async function findTwoDefinitions(
  names: readonly [string, string],
  args: CommandArguments,
  io: Io,
): Promise<readonly [JsonObject, JsonObject]> {
  const one = await findDefinitions(names[0], args, io);
  const other = await findDefinitions(names[1], args, io);
  return [names[0] === CURRENT ? withRootsOf(one, other) : one, names[1] === CURRENT ? withRootsOf(other, one) : other];
}

const CURRENT = 'current';

/** The definitions without the root machines of features that the others lack. */
function withRootsOf(definitions: JsonObject, others: JsonObject): JsonObject {
  const roots = new Set(installedFeatures().flatMap(({ root }) => root?.name ?? []));
  return Object.fromEntries(
    Object.entries(definitions).filter(([name]) => !roots.has(name) || Object.hasOwn(others, name)),
  );
}

async function findDefinitions(name: string, args: CommandArguments, io: Io): Promise<JsonObject> {
  const found: unknown = await readDefinitions(name, args, io);
  if (isDefinitions(found)) return found;
  throw usageError(`${name} contains no machine definitions`);
}

async function readDefinitions(name: string, args: CommandArguments, io: Io): Promise<unknown> {
  if (name === CURRENT) {
    await loadAllFeatures();
    const checked = requireValidPolicy((await loadContract(findContractFolder(args, io), io)).check);
    // Some states exist only under their flag.
    const policy = { ...checked, flags: newTreeFlags(checked) };
    return parseOwnJson(definitionsOf(policy, ...installedFeatures().map(({ root }) => root)));
  }
  const isHash = HASH_PREFIX.test(name);
  if (!isHash && !/^(?:run|ses)_/u.test(name)) return readJsonFile(name, 'machines diff', io);
  return withLedger(args, io, async ({ reader }) => {
    const hash = isHash ? await findHashByPrefix(name, reader) : await machinesHashOfRun(name, reader);
    const bytes = await reader.systemArtifact(hash);
    if (bytes === null) throw usageError(`the definitions ${hash} of ${name} are not in this ledger`);
    return parseOwnJson(Buffer.from(bytes).toString());
  });
}

async function machinesHashOfRun(run_id: string, reader: LedgerReader): Promise<string> {
  for await (const { text } of reader.tree(rootRunIdOf(run_id))) return pinnedHashOf(text) ?? throwUnknown(run_id);
  return throwUnknown(run_id);
}

/** The only recorded hash with this prefix. */
async function findHashByPrefix(prefix: string, reader: LedgerReader): Promise<string> {
  const found = new Set<string>();
  for await (const text of reader.openings()) {
    const hash = pinnedHashOf(text);
    if (hash?.startsWith(prefix) === true) found.add(hash);
  }
  const [hash, ...more] = found;
  if (hash === undefined) return throwUnknown(prefix);
  if (more.length > 0) throw usageError(`${prefix} is ambiguous: ${[...found].sort().join(' or ')}`);
  return hash;
}

const pinnedHashOf = (opening: string): string | null =>
  (parseOwnJson(opening) as { readonly body?: { readonly machines?: { readonly hash_sha256?: string } } }).body
    ?.machines?.hash_sha256 ?? null;

function throwUnknown(name: string): never {
  throw usageError(`this ledger has no machine definitions of ${name}`);
}
