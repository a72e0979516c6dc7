import { BALLOT_DIGESTS_MAX } from '../../contract/approval.js';
import { APPROVAL_RULES } from '../../policy/approval.js';
import type { Ballot, BallotResult, HighRiskRun } from '../../runtime/high-risk/options.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { quoted, wrong } from '../arguments.js';
import type { Args, Command, ExitCode } from '../command.js';
import { withHome, type HeldHome } from '../held-home.js';
import { usage, type Io } from '../io.js';
import { endWithin, personOf, PERSON_OPTIONS } from '../people.js';
import { escaped, jsonLine, painter, table } from '../terminal.js';

const WAIT_SECONDS_DEFAULT = 60;
const WAIT_SECONDS_MAX = 86_400;

/** `turnpike approve`: somebody's yes or no to exact requests of one run (D7). */
export const approve: Command = {
  name: 'approve',
  summary: 'Approve, or reject, what a run asks for',
  operands: { usage: 'RUN_ID DIGEST...', min: 2, max: 1 + BALLOT_DIGESTS_MAX },
  options: [
    { name: 'reject', help: 'say no: that decides the request' },
    ...PERSON_OPTIONS,
    {
      name: 'wait',
      value: 'SECONDS',
      help: `wait so long for what this sets going (default ${WAIT_SECONDS_DEFAULT})`,
    },
  ],
  notes: [
    '`turnpike approvals` shows what there is, each request with its digest. Each vote is told with the rule by which it',
    'counts or not; the exit code is 1 when none counts. What an approval sets going is waited for where no other process',
    'has the home. A promotion is approved while the service runs that has registered its table: nobody else could',
    'carry it out, and the approval would be used up.',
  ],
  async run(args, io) {
    const ballot = ballotOf(args);
    const seconds = secondsOf(args);
    return withHome(args, io, async (home) => {
      const going = home.here === null ? null : await runHere(home.here, ballot);
      return vote(home, ballot, { going, seconds, json: args.flag('json') }, io);
    });
  },
};

interface Waiting {
  /** The run that this process would set going. */
  readonly going: HighRiskRun | null;
  readonly seconds: number;
  readonly json: boolean;
}

async function vote(home: HeldHome, ballot: Ballot, { going, seconds, json }: Waiting, io: Io): Promise<ExitCode> {
  const results = await home.approve(ballot);
  await tell(results, json, io);
  if (!results.some(({ counted }) => counted)) return 1;
  if (going === null || !results.some(({ rule_id }) => DECIDING.includes(rule_id))) return 0;
  const ending = await endWithin(going.finished, seconds, io);
  if (ending === null) {
    await io.stderr.say(`${going.run_id} has not ended yet: the next opening of the home finds out what became of it`);
  } else if (json) {
    await io.stdout.write(jsonLine({ run: ending }));
  } else {
    await io.stdout.write(`${escaped(`${ending.run_id} ${ending.state} (${ending.reason})`)}\n`);
  }
  return 0;
}

/** Rules of a vote after which the run does not wait any more. */
const DECIDING: readonly string[] = ['approval.granted', 'approval.rejected'];

async function tell(results: readonly BallotResult[], json: boolean, io: Io): Promise<void> {
  if (json) {
    for (const result of results) await io.stdout.write(jsonLine(result));
    return;
  }
  const rows = results.map(({ digest, counted, rule_id }) => [
    { text: escaped(digest) },
    { text: escaped(rule_id), colour: counted ? ('green' as const) : ('yellow' as const) },
    { text: Object.hasOwn(APPROVAL_RULES, rule_id) ? APPROVAL_RULES[rule_id as keyof typeof APPROVAL_RULES] : '' },
  ]);
  await io.stdout.write(table(rows, painter(io.colours)));
}

/** @throws UsageError for the approval of a promotion, which needs what only its service has */
async function runHere(here: Turnpike, { run, decision }: Ballot): Promise<HighRiskRun | null> {
  const going = await here.highRiskRun(run);
  if (going === null || decision === 'reject') return going;
  if ((await here.ledger.run(run))?.run_kind !== 'promotion') return going;
  throw usage(`${run} is a promotion: approve it while the service runs that has registered its table`);
}

function ballotOf(args: Args): Ballot {
  const [run = '', ...digests] = args.operands;
  for (const digest of digests) {
    if (!/^[0-9a-f]{64}$/u.test(digest)) throw wrong(approve, `${quoted(digest)} is no digest`);
  }
  return { run, digests, decision: args.flag('reject') ? 'reject' : 'approve', ...personOf(approve, args) };
}

function secondsOf(args: Args): number {
  const text = args.text('wait') ?? String(WAIT_SECONDS_DEFAULT);
  if (/^\d{1,5}$/u.test(text) && Number(text) <= WAIT_SECONDS_MAX) return Number(text);
  throw wrong(approve, `--wait takes seconds, up to ${WAIT_SECONDS_MAX}`);
}
