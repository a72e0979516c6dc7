// The command line as a function: it finds the command, checks its arguments, runs it, and turns errors into a line and
// an exit code.

import { declareFeatures, FEATURES } from '../../features/declare-features.js';
import { usageError } from '../../core/errors.js';
import { NOTHING_CONFIGURED, parseArguments, quoteArgument, type ConfiguredArguments } from './arguments.js';
import { homeUseOf, type CliCommand, type CommandGroup, type ExitCode } from './command.js';
import { actions } from './commands/policy/actions-command.js';
import { agentsDoctor } from './commands/agents/agents-doctor-command.js';
import { agentsInstall } from './commands/agents/agents-install-command.js';
import { agentsReopen } from './commands/agents/agents-reopen-command.js';
import { agentsSessions } from './commands/agents/agents-sessions-command.js';
import { agentsUninstall } from './commands/agents/agents-uninstall-command.js';
import { hook } from './commands/agents/hook-command.js';
import { approvals } from './commands/runs/approvals-command.js';
import { approve } from './commands/runs/approve-command.js';
import { exportCase } from './commands/runs/export-command.js';
import { exportVerify } from './commands/runs/export-verify-command.js';
import { configPrint } from './commands/config-print-command.js';
import { completion } from './commands/completion-command.js';
import { helpText, overviewText } from './help/help-text.js';
import { clusterStatus } from './commands/cluster/cluster-status-command.js';
import { failoverAccept } from './commands/cluster/failover-accept-command.js';
import { backup } from './commands/home/backup-command.js';
import { restore } from './commands/home/restore-command.js';
import { restoreAcknowledge } from './commands/home/restore-acknowledge-command.js';
import { doctor } from './commands/home/doctor-command.js';
import { homeCopy } from './commands/home/home-copy-command.js';
import { homeReopen } from './commands/home/home-reopen-command.js';
import { init } from './commands/init-command.js';
import { keysList } from './commands/keys/keys-list-command.js';
import { keysRotate } from './commands/keys/keys-rotate-command.js';
import { ledgerArchive } from './commands/ledger/ledger-archive-command.js';
import { ledgerCheckProof } from './commands/ledger/ledger-check-proof-command.js';
import { ledgerCheckpoint } from './commands/ledger/ledger-checkpoint-command.js';
import { ledgerErase } from './commands/ledger/ledger-erase-command.js';
import { ledgerExport } from './commands/ledger/ledger-export-command.js';
import { ledgerProve } from './commands/ledger/ledger-prove-command.js';
import { ledgerVerify } from './commands/ledger/ledger-verify-command.js';
import { machinesDiff } from './commands/ledger/machines-diff-command.js';
import { mcp } from './commands/service/mcp-command.js';
import { policyCheck } from './commands/policy/policy-check-command.js';
import { policyCoverage } from './commands/policy/policy-coverage-command.js';
import { policyDeny } from './commands/policy/policy-deny-command.js';
import { policyExplain } from './commands/policy/policy-explain-command.js';
import { policyPin } from './commands/policy/policy-pin-command.js';
import { policySimulate } from './commands/policy/policy-simulate-command.js';
import { policyTest } from './commands/policy/policy-test-command.js';
import { promote } from './commands/runs/promote-command.js';
import { registrations } from './commands/policy/registrations-command.js';
import { replayCommand } from './commands/ledger/replay-command.js';
import { run } from './commands/runs/run-command.js';
import { runs } from './commands/runs/runs-command.js';
import { decide } from './commands/runs/decide-command.js';
import { runsReport } from './commands/runs/runs-report-command.js';
import { runsResolve } from './commands/runs/runs-resolve-command.js';
import { inspectCommand } from './commands/service/inspect-command.js';
import { serve } from './commands/service/serve-command.js';
import { SESSION_COMMANDS } from './commands/session/session-command-list.js';
import { step } from './commands/runs/step-command.js';
import { worker } from './commands/service/worker-command.js';
import { token, tokenList, tokenRevoke } from './commands/service/token-command.js';
import { upstreamList } from './commands/service/upstream-list-command.js';
import { upstreamPin } from './commands/service/upstream-pin-command.js';
import { version } from './commands/version-command.js';
import { configurationKeys } from './configuration/command-keys.js';
import { configuredArguments, readConfiguration } from './configuration/read-configuration.js';
import { errorJson, errorLine, exitCodeOf } from './exit-code.js';
import { OutputClosedError, type Io } from './io.js';
import { homeOf } from './options/folders.js';
import { refuseTrackedKeys } from '../../home/tracked-keys.js';
import { nearestName } from '../../host/configuration/nearest-name.js';

/** The commands that every installation has. */
const OWN_GROUPS: readonly CommandGroup[] = [
  { title: 'start', commands: [init, configPrint(() => COMMANDS), completion(() => COMMANDS), version] },
  {
    title: 'agents and runs',
    commands: [step, run, decide, runs, runsReport, runsResolve, promote, exportCase, exportVerify],
  },
  {
    title: 'coding agents',
    commands: [hook, agentsInstall, agentsUninstall, agentsDoctor, agentsSessions, agentsReopen],
  },
  { title: 'approvals', commands: [approvals, approve] },
  { title: 'sessions', commands: SESSION_COMMANDS },
  {
    title: 'policy',
    commands: [
      actions,
      policyCheck,
      policyTest,
      policyPin,
      policyDeny,
      policySimulate,
      policyExplain,
      policyCoverage,
      registrations,
      upstreamList,
      upstreamPin,
    ],
  },
  {
    title: 'evidence',
    commands: [
      replayCommand,
      ledgerVerify,
      ledgerCheckpoint,
      ledgerProve,
      ledgerCheckProof,
      ledgerExport,
      ledgerErase,
      ledgerArchive,
      machinesDiff,
      inspectCommand,
    ],
  },
  {
    title: 'services',
    commands: [serve, mcp, worker, clusterStatus, failoverAccept, token, tokenList, tokenRevoke, homeCopy, homeReopen],
  },
  { title: 'backups and keys', commands: [backup, restore, restoreAcknowledge, keysList, keysRotate, doctor] },
];

const added = (await Promise.all(FEATURES.map(async ({ commands }) => (await commands?.()) ?? []))).flat();
const titles = new Set([...OWN_GROUPS, ...added].map(({ title }) => title));

/** Every command, in the order of the help: those of features follow the others under their title. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [...titles].map((title) => ({
  title,
  commands: [...OWN_GROUPS, ...added].filter((group) => group.title === title).flatMap(({ commands }) => commands),
}));

export const COMMANDS: readonly CliCommand[] = COMMAND_GROUPS.flatMap(({ commands }) => commands);

/** Runs `turnpike` with these arguments. Never throws. */
export async function turnpikeCommand(argv: readonly string[], io: Io): Promise<ExitCode> {
  declareFeatures();
  try {
    return await dispatch(argv, io);
  } catch (error) {
    if (error instanceof OutputClosedError) return 0;
    const code = exitCodeOf(error);
    await io.stderr.write(argv.includes('--json') ? errorJson(error, code ?? 3) : `${errorLine(error)}\n`);
    if (code === null) io.log.error('the command failed with an unexpected error', { error });
    return code ?? 3;
  } finally {
    io.progress.close();
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [first] = argv;
  if (first === undefined) {
    await io.stderr.write(overviewText(COMMAND_GROUPS));
    return 2;
  }
  if (first === 'help' || first === '--help' || first === '-h') return printHelp(argv.slice(1), io);
  if (first === '--version') return version.run(parseArguments(version, []), io);
  const { command, rest } = findCommand(argv);
  if (rest.includes('--help') || rest.includes('-h')) return printHelp(command.name.split(' '), io);
  const args = parseArguments(command, rest, (file) => configure(command, file, io));
  if (homeUseOf(command, args) !== 'none') await refuseTrackedKeys(homeOf(args, io));
  return command.run(args, io);
}

/** @throws UsageError for an invalid configuration */
function configure(command: CliCommand, file: string | undefined, io: Io): ConfiguredArguments {
  if (command === version) return NOTHING_CONFIGURED;
  const configuration = readConfiguration(configurationKeys(COMMANDS), file, io);
  return configuredArguments(command, configuration);
}

async function printHelp(words: readonly string[], io: Io): Promise<ExitCode> {
  await io.stdout.write(words.length === 0 ? overviewText(COMMAND_GROUPS) : helpText(findCommand(words).command));
  return 0;
}

/** @throws UsageError if the arguments name no command */
function findCommand(argv: readonly string[]): { readonly command: CliCommand; readonly rest: readonly string[] } {
  // If both `export` and `export verify` match, the longer name wins.
  const [command] = COMMANDS.filter(({ name }) => name.split(' ').every((word, i) => argv[i] === word)).toSorted(
    (a, b) => b.name.length - a.name.length,
  );
  if (command !== undefined) return { command, rest: argv.slice(command.name.split(' ').length) };
  const [first = ''] = argv;
  if (first.startsWith('-')) throw usageError(`name the command before ${quoteArgument(first)}: see \`turnpike help\``);
  const longer = COMMANDS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => `\`${name}\``);
  if (longer.length > 0) throw usageError(`incomplete command; use ${longer.join(' or ')}: see \`turnpike help\``);
  throw usageError(`unknown command ${quoteArgument(first)}${suggestCommand(argv)}: see \`turnpike help\``);
}

/** The command that these words most probably mean, as the end of a message. */
function suggestCommand(argv: readonly string[]): string {
  const words = argv.filter((word) => !word.startsWith('-'));
  const names = COMMANDS.map(({ name }) => name);
  const [first = '', second = ''] = words;
  // `policy-check` is written by those who remember the words and not the space.
  const guesses = [`${first} ${second}`, first, first.replaceAll('-', ' ')];
  const nearest = guesses.map((guess) => nearestName(guess.trim(), names)).find((name) => name !== null) ?? null;
  return nearest === null ? '' : `; did you mean \`${nearest}\`?`;
}
