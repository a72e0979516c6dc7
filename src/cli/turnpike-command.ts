// The command line as a function: it finds the command, checks its arguments, runs it, and turns what is thrown into a
// line and an exit code.

import { parseArguments, quoted } from './arguments.js';
import type { Command, ExitCode } from './command.js';
import { actions } from './commands/actions.js';
import { approvals } from './commands/approvals.js';
import { approve } from './commands/approve.js';
import { exportCase } from './commands/export.js';
import { exportVerify } from './commands/export-verify.js';
import { helpOf, overview } from './commands/help.js';
import { init } from './commands/init.js';
import { ledgerArchive } from './commands/ledger-archive.js';
import { ledgerCheckProof } from './commands/ledger-check-proof.js';
import { ledgerCheckpoint } from './commands/ledger-checkpoint.js';
import { ledgerErase } from './commands/ledger-erase.js';
import { ledgerExport } from './commands/ledger-export.js';
import { ledgerProve } from './commands/ledger-prove.js';
import { ledgerVerify } from './commands/ledger-verify.js';
import { machinesDiff } from './commands/machines-diff.js';
import { mcp } from './commands/mcp.js';
import { policyCheck } from './commands/policy-check.js';
import { policyDeny } from './commands/policy-deny.js';
import { policyExplain } from './commands/policy-explain.js';
import { policyPin } from './commands/policy-pin.js';
import { policySimulate } from './commands/policy-simulate.js';
import { promote } from './commands/promote.js';
import { replay } from './commands/replay.js';
import { run } from './commands/run.js';
import { runs } from './commands/runs.js';
import { runsResolve } from './commands/runs-resolve.js';
import { inspect } from './commands/inspect.js';
import { serve } from './commands/serve.js';
import { SESSION_COMMANDS } from './commands/session.js';
import { step } from './commands/step.js';
import { token, tokenList, tokenRevoke } from './commands/token.js';
import { upstreamList } from './commands/upstream-list.js';
import { upstreamPin } from './commands/upstream-pin.js';
import { version } from './commands/version.js';
import { errorLine, exitCodeOf } from './exit-code.js';
import { OutputClosed, usage, type Io } from './io.js';

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  init,
  step,
  run,
  runs,
  runsResolve,
  replay,
  ledgerVerify,
  ledgerCheckpoint,
  ledgerProve,
  ledgerCheckProof,
  ledgerExport,
  ledgerErase,
  ledgerArchive,
  machinesDiff,
  policyCheck,
  policyPin,
  policyDeny,
  policySimulate,
  policyExplain,
  ...SESSION_COMMANDS,
  upstreamList,
  upstreamPin,
  promote,
  exportCase,
  exportVerify,
  approvals,
  approve,
  actions,
  mcp,
  serve,
  inspect,
  token,
  tokenList,
  tokenRevoke,
  version,
];

/** Runs `turnpike` with these arguments. Never throws. */
export async function turnpikeCommand(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    return await dispatched(argv, io);
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    await io.stderr.say(errorLine(error));
    const code = exitCodeOf(error);
    if (code === null) io.log.error('the command failed in a way that nobody foresaw', { error });
    return code ?? 3;
  }
}

async function dispatched(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [first] = argv;
  if (first === undefined) {
    await io.stderr.write(overview(COMMANDS));
    return 2;
  }
  if (first === 'help' || first === '--help' || first === '-h') return help(argv.slice(1), io);
  if (first === '--version') return version.run(parseArguments(version, []), io);
  const { command, rest } = named(argv);
  if (rest.includes('--help') || rest.includes('-h')) return help(command.name.split(' '), io);
  return command.run(parseArguments(command, rest), io);
}

async function help(words: readonly string[], io: Io): Promise<ExitCode> {
  await io.stdout.write(words.length === 0 ? overview(COMMANDS) : helpOf(named(words).command));
  return 0;
}

/** @throws UsageError for what is no command */
function named(argv: readonly string[]): { readonly command: Command; readonly rest: readonly string[] } {
  // Of `export` and `export verify`, the longer name is meant.
  const [command] = COMMANDS.filter(({ name }) => name.split(' ').every((word, i) => argv[i] === word)).toSorted(
    (a, b) => b.name.length - a.name.length,
  );
  if (command !== undefined) return { command, rest: argv.slice(command.name.split(' ').length) };
  const [first = ''] = argv;
  if (first.startsWith('-')) throw usage(`the command comes first, then ${quoted(first)}: see \`turnpike help\``);
  const longer = COMMANDS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => `\`${name}\``);
  if (longer.length > 0) throw usage(`say ${longer.join(' or ')}: see \`turnpike help\``);
  throw usage(`${quoted(first)} is no command: see \`turnpike help\``);
}
