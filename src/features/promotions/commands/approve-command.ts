import { usageError } from '../../../core/errors.js';
import { BALLOT_DIGESTS_MAX } from '../../../core/contract/run/approval.js';
import { APPROVAL_RULES } from '../../../core/contract/run/approval-rules.js';
import type { Ballot, BallotResult, HighRiskRun } from '../../../runtime/high-risk-options.js';
import type { Turnpike } from '../../../host/turnpike.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import { defineCommand, type CliCommand, type ExitCode } from '../../../interfaces/cli/command.js';
import { withHomeAccess, type HomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { integerType } from '../../../interfaces/cli/option-types.js';
import { PERSON_OPTIONS, waitForEnd } from '../../../interfaces/cli/options/person-options.js';
import { escapeText, jsonLine, createPainter, table } from '../../../interfaces/cli/text/terminal.js';

const WAIT_SECONDS_DEFAULT = 60;
const WAIT_SECONDS_MAX = 86_400;

/** `turnpike approve`: records a person's yes or no to exact requests of one run (D7). */
export const approve: CliCommand = defineCommand({
  name: 'approve',
  access: 'write',
  summary: 'Approve or reject requests of a run',
  operands: { usage: 'RUN_ID DIGEST...', min: 2, max: 1 + BALLOT_DIGESTS_MAX },
  options: [
    { name: 'reject', help: 'reject the requests: one rejection decides a request' },
    ...PERSON_OPTIONS,
    {
      name: 'wait',
      value: 'SECONDS',
      type: integerType({ max: WAIT_SECONDS_MAX, takes: `a number of seconds up to ${WAIT_SECONDS_MAX}` }),
      default: String(WAIT_SECONDS_DEFAULT),
      help: `how many seconds to wait for the run to end (default ${WAIT_SECONDS_DEFAULT})`,
    },
  ],
  notes: [
    '`turnpike approvals` lists the requests with their digests. For each vote the command prints the rule by which it',
    'counts or does not count; the exit code is 1 if no vote counts. If no other process has the home directory open,',
    'the command waits for the run that an approval starts. Approve a promotion only while the service that registered',
    'its table is running: no other process could execute it, and the approval would be used up. A vote on a request of a',
    'coding agent is a reminder and no barrier, because a program that the agent may run can give it too.',
  ],
  async run(args, io) {
    const { actor, role, reject, wait: seconds, json } = args.values;
    const [run = '', ...digests] = args.operands;
    const unknown = digests.find((digest) => !/^[0-9a-f]{64}$/u.test(digest));
    if (unknown !== undefined)
      throw args.usageError(`${quoteArgument(unknown)} is not a digest: see \`turnpike approvals\``);
    const ballot: Ballot = { run, digests, decision: reject ? 'reject' : 'approve', actor, role };
    return withHomeAccess(args, io, async (home) => {
      const startedRun = home.localTurnpike === null ? null : await findLocalRun(home.localTurnpike, ballot);
      return vote(home, ballot, { startedRun, seconds, json }, io);
    });
  },
});

interface VoteOptions {
  /** The run that this process would start after the approval. */
  readonly startedRun: HighRiskRun | null;
  readonly seconds: number;
  readonly json: boolean;
}

async function vote(
  home: HomeAccess,
  ballot: Ballot,
  { startedRun, seconds, json }: VoteOptions,
  io: Io,
): Promise<ExitCode> {
  const results = await home.turnpike.approve(ballot);
  await printVotes(results, json, io);
  if (results.some(({ reminder }) => reminder === true)) await io.stderr.writeLine(REMINDER);
  if (!results.some(({ counted }) => counted)) return 1;
  if (startedRun === null || !results.some(({ rule_id }) => DECIDING_RULES.includes(rule_id))) return 0;
  const ending = await waitForEnd(startedRun.finished, seconds, io);
  if (ending === null) {
    await io.stderr.writeLine(
      `${startedRun.run_id} has not ended yet: the next command that opens the home directory recovers it`,
    );
  } else if (json) {
    await io.stdout.write(jsonLine({ run: ending }));
  } else {
    await io.stdout.write(`${escapeText(`${ending.run_id} ${ending.state} (${ending.reason})`)}\n`);
  }
  return 0;
}

const REMINDER =
  'This vote is a reminder and no barrier: nothing proves who gives it, and a program that the coding agent may run can ' +
  'give it too. With `identity` in its approval rule only voters of an issuer count.';

/** The rules of votes that end the wait of the run. */
const DECIDING_RULES: readonly string[] = ['approval.granted', 'approval.rejected'];

async function printVotes(results: readonly BallotResult[], json: boolean, io: Io): Promise<void> {
  if (json) {
    for (const result of results) await io.stdout.write(jsonLine(result));
    return;
  }
  const rows = results.map(({ digest, counted, rule_id }) => [
    { text: escapeText(digest) },
    { text: escapeText(rule_id), colour: counted ? ('green' as const) : ('yellow' as const) },
    { text: Object.hasOwn(APPROVAL_RULES, rule_id) ? APPROVAL_RULES[rule_id as keyof typeof APPROVAL_RULES] : '' },
  ]);
  await io.stdout.write(table(rows, createPainter(io.colours)));
}

/** @throws UsageError for the approval of a promotion, which needs the targets of its embedding service */
async function findLocalRun(here: Turnpike, { run, decision }: Ballot): Promise<HighRiskRun | null> {
  const startedRun = await here.highRiskRun(run);
  if (startedRun === null) return null;
  const kind = (await here.ledger.run(run))?.run_kind;
  // An operator's act: the command that asked for it executes it.
  if (kind === 'tool_gateway') return null;
  if (decision === 'reject' || kind !== 'promotion') return startedRun;
  throw usageError(`${run} is a promotion: approve it while the service that registered its table is running`);
}
