import { usageError } from '../../../../core/errors.js';
import { overlayFiles, type OverlayFiles } from '../../../../home/policy/overlay-file.js';
import { readOverlay, writeOverlay } from '../../../../home/policy/overlay-writer.js';
import { systemClock } from '../../../../system/system-clock.js';
import { findAction } from '../../../../core/contract/policy/catalogue.js';
import {
  OVERLAY_MATCHERS,
  OVERLAY_RULES_MAX,
  OverlayRule,
  type OverlayMatcher,
  type OverlayRule as Rule,
} from '../../../../core/contract/policy/overlay.js';
import { findTextProblem } from '../../../../core/contract/text-rule.js';
import { isConforming } from '../../../../core/contract/validators.js';
import { NAME_PROBLEMS, personOf } from '../../../../names/person-name.js';
import type { ClusterDirectory, ClusterWorker } from '../../../../engine/ports/ledger/cluster.js';
import { requireHome } from '../../../../home/home.js';
import { quoteArgument } from '../../arguments.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type ExitCode,
} from '../../command.js';
import { homeOf } from '../../options/folders.js';
import type { Io } from '../../io.js';
import { findSharedHome, openCluster } from '../../store/shared-home.js';
import { countText, escapeText, jsonLine, createPainter, table } from '../../text/terminal.js';
import { setTimeout as delay } from 'node:timers/promises';

// Each may be given once. They are lists, so that a second one is reported and does not silently replace the first.
const MATCHER_OPTIONS = {
  role_id: { name: 'role', value: 'R', multiple: true, help: 'deny actions of this role' },
  lane_id: { name: 'lane', value: 'L', multiple: true, help: 'deny actions in this lane' },
  action: { name: 'action', value: 'A', multiple: true, help: 'deny this action' },
  tool: { name: 'tool', value: 'T', multiple: true, help: 'deny calls of this tool' },
  table: { name: 'table', value: 'T', multiple: true, help: 'deny reads and writes of this table' },
  case_id: { name: 'case', value: 'C', multiple: true, help: 'deny actions in this case' },
  run_id: { name: 'run', value: 'RUN', multiple: true, help: 'deny actions of this run and of every run below it' },
  actor_id: {
    name: 'actor',
    value: 'A',
    multiple: true,
    help: 'deny actions of this actor, in every spelling of the name',
  },
} as const satisfies Record<OverlayMatcher, CommandOption>;

const OPTIONS = [
  ...OVERLAY_MATCHERS.map((matcher) => MATCHER_OPTIONS[matcher]),
  { name: 'reason', value: 'TEXT', help: 'the reason, one line of up to 200 characters; required for a new rule' },
  { name: 'list', help: 'list the rules in force' },
  { name: 'lift', value: 'RULE_ID', help: 'remove a rule' },
  { name: 'repair', help: 'replace an overlay or key that is missing or damaged' },
] as const satisfies readonly CommandOption[];

type DenyArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike policy deny`: edits the emergency overlay, which takes effect in running trees at once (D1). */
export const policyDeny: CliCommand = defineCommand({
  name: 'policy deny',
  access: 'write',
  accessWith: [{ given: 'list', access: 'read' }],
  summary: 'Deny something at once, also to active runs; or list or lift such rules',
  operands: NO_OPERANDS,
  options: OPTIONS,
  notes: [
    'A rule denies every request that matches all its options; it can never allow anything. A key in the home',
    'directory, created on first use, signs the rules, and every decision records their epoch. A running process',
    'applies them at its next step; the policies that its run trees have pinned do not change. Needs no lock. While',
    'the overlay is missing, damaged or older than one already seen, everything is denied. --repair then writes a',
    'valid overlay, with or without a new rule, and drops the rules that can no longer be trusted. With a ledger in a',
    'database, the command returns when every worker applies the change or is over; after 30 s it lists the others and',
    'fails. The overlay then lies in the key folder that the workers share.',
  ],
  async run(args, io) {
    const paths = homeOf(args, io);
    const { home, overlay, keys } = paths;
    requireHome(home);
    const files = overlayFiles(overlay, keys);
    const matchers = parseMatchers(args);
    const { reason, list, lift, repair } = args.values;
    const adds = reason !== undefined || Object.keys(matchers).length > 0;
    const wants = [list, lift !== undefined, adds].filter(Boolean).length;
    if (wants > 1) throw args.usageError('use only one of --list, --lift and a new rule');
    if (list && repair) throw args.usageError('--list and --repair cannot be combined');
    if (list) return listRules(files, args, io);
    const rule = adds ? createRule(matchers, args) : null;
    const shared = findSharedHome(paths, args);
    // Opened before the rule is written: without the database, no worker can say that it applies the rule.
    const cluster = shared === null ? null : await openCluster(shared);
    try {
      await cluster?.status();
      const target = { files, cluster };
      if (lift !== undefined) return await liftRule(target, lift, args, io);
      if (rule !== null) return await addRule(target, rule, args, io);
      if (repair) return await repairOverlay(target, args, io);
    } finally {
      await cluster?.close();
    }
    throw args.usageError(NOTHING_DENIED);
  },
});

const NOTHING_DENIED = 'name what to deny: a role, a lane, an action, ...';

interface OverlayTarget {
  readonly files: OverlayFiles;
  /** The workers that must apply the overlay before the command succeeds; null for a ledger with one writer. */
  readonly cluster: ClusterDirectory | null;
}

type Matchers = Partial<Record<OverlayMatcher, string>>;

function parseMatchers(args: DenyArguments): Matchers {
  const matchers: Matchers = {};
  for (const matcher of OVERLAY_MATCHERS) {
    const { name } = MATCHER_OPTIONS[matcher];
    const [value, more] = args.values[name];
    if (more !== undefined) throw args.usageError(`a rule takes --${name} only once: add one rule for each value`);
    if (value === undefined) continue;
    if (!isConforming(OverlayRule.properties[matcher], value) || !value.isWellFormed()) {
      const problem = findTextProblem(OverlayRule.properties[matcher], value, 'it');
      const why = problem === null ? '' : ` ${problem}`;
      throw args.usageError(`invalid value of --${name}: ${quoteArgument(value)}${why}`);
    }
    const person = matcher === 'actor_id' ? personOf(value) : null;
    if (typeof person === 'string') throw args.usageError(`--${name}: the name ${NAME_PROBLEMS[person]}`);
    matchers[matcher] = value;
  }
  return matchers;
}

function createRule(
  matchers: Matchers,
  { values: { reason }, usageError: error }: DenyArguments,
): Omit<Rule, 'rule_id'> {
  if (Object.keys(matchers).length === 0) throw error(NOTHING_DENIED);
  if (reason === undefined) throw error('--reason is missing');
  if (!isConforming(OverlayRule.properties.reason, reason) || !reason.isWellFormed()) {
    throw error('--reason takes one line of up to 200 characters');
  }
  return { ...matchers, reason };
}

async function addRule(
  target: OverlayTarget,
  rule: Omit<Rule, 'rule_id'>,
  args: DenyArguments,
  io: Io,
): Promise<ExitCode> {
  if (rule.action !== undefined && findAction(rule.action) === undefined) {
    await io.stderr.writeLine(`warning: ${rule.action} is not a built-in action: see \`turnpike actions\``);
  }
  const { epoch } = await publishOverlay(target.files, args, (former, next) => {
    if (former.length < OVERLAY_RULES_MAX) return [...former, { ...rule, rule_id: ruleIdOf(next) }];
    throw usageError(`the overlay has reached its limit of ${OVERLAY_RULES_MAX} rules: lift one first`);
  });
  const message = { rule_id: ruleIdOf(epoch), epoch };
  await printResult(io, args, message, `${message.rule_id} is in force from epoch ${epoch} of the overlay`);
  return requireAcknowledged(target, epoch, io);
}

async function liftRule(target: OverlayTarget, lifted: string, args: DenyArguments, io: Io): Promise<ExitCode> {
  const { epoch } = await publishOverlay(target.files, args, (former) => {
    const rules = former.filter(({ rule_id }) => rule_id !== lifted);
    if (rules.length < former.length) return rules;
    throw usageError(`the overlay has no rule ${quoteArgument(lifted)}: see \`turnpike policy deny --list\``);
  });
  await printResult(io, args, { lifted, epoch }, `${lifted} is lifted, by epoch ${epoch} of the overlay`);
  return requireAcknowledged(target, epoch, io);
}

async function repairOverlay(target: OverlayTarget, args: DenyArguments, io: Io): Promise<ExitCode> {
  const { epoch, rules } = await publishOverlay(target.files, args, (former) => former);
  const text = `the overlay is valid, with epoch ${epoch} and ${countText(rules.length, 'rule')}`;
  await printResult(io, args, { epoch, rules }, text);
  return requireAcknowledged(target, epoch, io);
}

/** Waits until every worker applies the epoch. @returns 1 if one has not in time */
async function requireAcknowledged({ cluster }: OverlayTarget, epoch: number, io: Io): Promise<ExitCode> {
  const missing = cluster === null ? [] : await awaitOverlay(cluster, epoch);
  for (const { worker_id, pid, address } of missing) {
    const place = address === null ? '' : ` at ${address}`;
    await io.stderr.writeLine(
      escapeText(`worker ${worker_id}, pid ${pid}${place}, does not apply epoch ${epoch} yet: check its key folder`),
    );
  }
  return missing.length === 0 ? 0 : 1;
}

async function listRules(files: OverlayFiles, args: DenyArguments, io: Io): Promise<ExitCode> {
  const overlay = readOverlay(files);
  if (args.values.json) {
    await io.stdout.write(jsonLine(overlay ?? { epoch: 0, rules: [] }));
    return 0;
  }
  if (overlay === null) {
    await io.stderr.writeLine('there is no overlay: no rules are in force');
    return 0;
  }
  const { epoch, issued_at_utc, rules } = overlay;
  const rows = rules.map((rule) => [
    { text: rule.rule_id, colour: 'red' as const },
    { text: escapeText(matchersText(rule)) },
    { text: escapeText(rule.reason), colour: 'dim' as const },
  ]);
  await io.stdout.write(`epoch ${epoch} of ${issued_at_utc}: ${countText(rules.length, 'rule')}\n`);
  if (rows.length > 0) await io.stdout.write(table(rows, createPainter(io.colours)));
  return 0;
}

/** As the user would type them. */
const matchersText = (rule: Rule): string =>
  OVERLAY_MATCHERS.flatMap((matcher) => {
    const value = rule[matcher];
    return value === undefined ? [] : [`--${MATCHER_OPTIONS[matcher].name} ${value}`];
  }).join(' ');

type Rules = Parameters<typeof writeOverlay>[1]['rules'];

const publishOverlay = (files: OverlayFiles, args: DenyArguments, rules: Rules): ReturnType<typeof writeOverlay> =>
  writeOverlay(files, {
    issued_at_utc: new Date(systemClock().now()).toISOString(),
    repair: args.values.repair,
    rules,
  });

/** Epochs are never reused, so rule ids are unique. */
const ruleIdOf = (epoch: number): string => `deny-${epoch}`;

const printResult = (io: Io, args: DenyArguments, value: object, text: string): Promise<void> =>
  io.stdout.write(args.values.json ? jsonLine(value) : `${escapeText(text)}\n`);

/** How long to wait, in ms. Workers report every second, and a lost one is declared over after a few seconds. */
const ACKNOWLEDGE_MS = 30_000;
const POLL_MS = 100;

/** The workers that are not over and have not reported this epoch, or a later one. */
export const withoutEpoch = (workers: readonly ClusterWorker[], epoch: number): readonly ClusterWorker[] =>
  workers.filter(({ over_at, overlay_epoch }) => over_at === null && (overlay_epoch ?? 0) < epoch);

/**
 * Waits until every worker has reported the epoch, or is over. A worker that has lost its session is declared over.
 * @returns the workers that have not within `ACKNOWLEDGE_MS`
 * @throws LedgerError LEDGER_UNAVAILABLE
 */
export async function awaitOverlay(
  cluster: Pick<ClusterDirectory, 'status' | 'endLost'>,
  epoch: number,
  waitMs = ACKNOWLEDGE_MS,
): Promise<readonly ClusterWorker[]> {
  for (let waited = 0; ; waited += POLL_MS) {
    await cluster.endLost();
    const missing = withoutEpoch((await cluster.status()).workers, epoch);
    if (missing.length === 0 || waited >= waitMs) return missing;
    await delay(POLL_MS);
  }
}
