import { parseOwnJson, type JsonObject } from '../../../../core/contract/json.js';
import { loadAllFeatures } from '../../../../core/contract/run/feature-vocabulary.js';
import { rootRunIdOf } from '../../../../core/contract/run/run-context.js';
import { usageError } from '../../../../core/errors.js';
import { definitionsOf, newTreeFlags } from '../../../../kernel/pinned-policy.js';
import {
  diffDefinitions,
  type DefinitionsDiff,
  type StateShape,
  type Transition,
} from '../../../../kernel/replay/machines-diff.js';
import { isDefinitions } from '../../../../kernel/replay/walk-machine.js';
import { installedFeatures } from '../../../../kernel/tree-feature.js';
import type { LedgerReader } from '../../../../runtime/ledger/ledger-reader.js';
import type { CliCommand, CommandArguments } from '../../command.js';
import type { Io } from '../../io.js';
import { findContractFolder, loadContract, requireValidPolicy, withLedger } from '../../options/folders.js';
import { readJsonFile } from '../../payloads.js';
import { escapeLines, jsonLine } from '../../text/terminal.js';

/** `turnpike machines diff`: compares two versions of the machines. */
export const machinesDiff: CliCommand = {
  name: 'machines diff',
  access: 'read',
  summary: 'List the states and transitions that differ between two machine definitions',
  operands: { usage: 'A B', min: 2, max: 2 },
  options: [],
  notes: [
    'A and B each are the beginning of a hash that runs have pinned, the id of a run or session, `current` for the',
    'machines of this version, or a JSON file. Exits 0 if they are the same, and 1 if they differ.',
  ],
  async run(args, io) {
    const [a = '', b = ''] = args.operands;
    const diff = diffDefinitions(...(await findTwoDefinitions([a, b], args, io)));
    await io.stdout.write(args.values.json ? jsonLine(diff) : textOf(diff));
    return diff.same ? 0 : 1;
  },
};

function textOf({ same, machines, flags, others }: DefinitionsDiff): string {
  if (same) return 'the same machines\n';
  const lines = machines.flatMap(({ machine, states, transitions }) => [
    machine,
    ...states.removed.map((state) => `  - state ${stateText(state)}`),
    ...states.added.map((state) => `  + state ${stateText(state)}`),
    ...states.changed.flatMap(({ before, after }) => [
      `  ~ state ${stateText(before)}`,
      `    now   ${stateText(after)}`,
    ]),
    ...transitions.removed.map((edge) => `  - ${edgeText(edge)}`),
    ...transitions.added.map((edge) => `  + ${edgeText(edge)}`),
    ...transitions.changed.flatMap(({ before, after }) => [`  ~ ${edgeText(before)}`, `    now ${edgeText(after)}`]),
  ]);
  lines.push(...flags.removed.map((flag) => `- flag ${flag}`), ...flags.added.map((flag) => `+ flag ${flag}`));
  lines.push(...others.map((name) => `~ ${name}`));
  return escapeLines(lines);
}

const stateText = ({ name, shape }: StateShape): string => `${name} ${shape}`;

const edgeText = ({ source, event, place, target, guard, actions }: Transition): string =>
  [
    `${source} -- ${event}${place === 0 ? '' : ` (${place + 1}.)`} --> ${target ?? '(stays)'}`,
    ...(guard === null ? [] : [`if ${guard}`]),
    ...(actions.length === 0 ? [] : [`do ${actions.join(', ')}`]),
  ].join('  ');

const HASH_PREFIX = /^[0-9a-f]{6,64}$/u;

/**
 * Both definitions of a comparison. A tree pins the root machine of the feature that opened it and no other one, so the
 * present definitions have those that the other side has.
 * @throws UsageError for an unknown or ambiguous name
 */
async function findTwoDefinitions(
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
