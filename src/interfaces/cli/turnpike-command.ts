// The command line as a function: it finds the command, checks its arguments, runs it, and turns errors into a line and
// an exit code.

import { declareFeatures, FEATURES } from '../../features/declare-features.js';
import { usageError } from '../../core/errors.js';
import { NOTHING_CONFIGURED, parseArguments, quoteArgument, type ConfiguredArguments } from './arguments.js';
import { homeUseOf, type CliCommand, type CommandGroup, type ExitCode } from './command.js';
import { actions } from './commands/policy/actions-command.js';
import { configPrint } from './commands/config-print-command.js';
import { completion } from './commands/completion-command.js';
import { helpText, overviewText } from './help/help-text.js';
import { init } from './commands/init-command.js';
import { keysList, keysRotate } from './commands/keys-commands.js';
import { ledgerCheckpoint, ledgerCheckProof, ledgerProve } from './commands/ledger/ledger-proof-commands.js';
import { ledgerErase } from './commands/ledger/ledger-erase-command.js';
import { ledgerVerify } from './commands/ledger/ledger-verify-command.js';
import { machinesDiff } from './commands/ledger/machines-diff-command.js';
import { mcp } from './commands/service/mcp-command.js';
import { policyDeny } from './commands/policy/policy-deny-command.js';
import { registrations } from './commands/policy/registrations-command.js';
import { replayCommand } from './commands/ledger/replay-command.js';
import { run, step } from './commands/runs/run-command.js';
import { runs } from './commands/runs/runs-command.js';
import { inspectCommand } from './commands/service/inspect-command.js';
import { serve, worker } from './commands/service/serve-command.js';
import { token, tokenList, tokenRevoke } from './commands/service/token-command.js';
import { version } from './commands/version-command.js';
import { configurationKeys, configuredArguments, readConfiguration } from './configuration/read-configuration.js';
import { errorJson, errorLine, exitCodeOf } from './exit-code.js';
import { OutputClosedError, type Io } from './io.js';
import { homeOf } from './options/folders.js';
import { refuseTrackedKeys } from '../../home/tracked-keys.js';
import { nearestName } from '../../host/configuration/nearest-name.js';

/** The order of the help. A title without commands is not printed. */
const TITLES: readonly string[] = [
  'start',
  'agents and runs',
  'coding agents',
  'approvals',
  'sessions',
  'policy',
  'evidence',
  'services',
  'backups and keys',
];

/** The commands that every installation has. */
const OWN_GROUPS: readonly CommandGroup[] = [
  { title: 'start', commands: [init, configPrint(() => COMMANDS), completion(() => COMMANDS), version] },
  { title: 'agents and runs', commands: [step, run, runs] },
  { title: 'policy', commands: [actions, policyDeny, registrations] },
  {
    title: 'evidence',
    commands: [
      replayCommand,
      ledgerVerify,
      ledgerCheckpoint,
      ledgerProve,
      ledgerCheckProof,
      ledgerErase,
      machinesDiff,
      inspectCommand,
    ],
  },
  { title: 'services', commands: [serve, mcp, worker, token, tokenList, tokenRevoke] },
  { title: 'backups and keys', commands: [keysList, keysRotate] },
];

const added = (await Promise.all(FEATURES.map(async ({ commands }) => (await commands?.()) ?? []))).flat();
const groups = [...OWN_GROUPS, ...added];
const titles = new Set([...TITLES, ...groups.map(({ title }) => title)]);

/** Every command, in the order of the help: those of features follow the others under their title. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [...titles]
  .map((title) => ({
    title,
    commands: groups.filter((group) => group.title === title).flatMap(({ commands }) => commands),
  }))
  .filter(({ commands }) => commands.length > 0);

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
  if (first === '--version') return version.run(parseArguments(version, [], io), io);
  const { command, rest } = findCommand(argv);
  if (rest.includes('--help') || rest.includes('-h')) return printHelp(command.name.split(' '), io);
  const args = parseArguments(command, rest, {
    cwd: io.cwd,
    configure: (file) => configure(command, file, io),
  });
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
