import { systemClock } from '../../../adapters/system/system-clock.js';
import type { PendingApproval } from '../../../runtime/ledger/ledger-reader.js';
import { quoteArgument, commandUsageError } from '../../arguments.js';
import type { CommandArguments, CliCommand, ExitCode } from '../../command.js';
import { withLedger } from '../../options/folders.js';
import { withHomeAccess } from '../../home-access.js';
import { usageError, type Io } from '../../io.js';
import { parsePerson, PERSON_OPTIONS } from '../../options/person-options.js';
import { escapeText, jsonLine, createPainter, table, type TextCell, type Paint } from '../../text/terminal.js';

/** `turnpike approvals`: lists pending approvals and the votes so far (D7). */
export const approvals: CliCommand = {
  name: 'approvals',
  summary: 'Show what waits for approval: what exactly is asked, by whom, and the votes so far',
  operands: { usage: '[RUN_ID DIGEST]', min: 0, max: 2 },
  options: [...PERSON_OPTIONS],
  notes: [
    'Needs no lock. What is shown as the request has been made into its digest once more, so that whoever approves the',
    'digest approves exactly that. Of a request that a lane withholds (withholds_content) the hash is shown: an approver',
    'sees it with RUN_ID, DIGEST, --actor and --role, and the ledger says who did. With --json: one open request a line.',
  ],
  async run(args, io) {
    if (args.operands.length > 0) return showRequest(args, io);
    const paint = createPainter(io.colours);
    const now = new Date(systemClock().now()).toISOString();
    let count = 0;
    await withLedger(args, io, async ({ reader }) => {
      for await (const approval of reader.approvals(now)) {
        const text = args.flag('json') ? jsonLine(approval) : textOf(approval, paint);
        await io.stdout.write(args.flag('json') || count === 0 ? text : `\n${text}`);
        count += 1;
      }
    });
    if (count === 0) await io.stderr.writeLine('nothing waits for approval');
    return 0;
  },
};

/** Shows one request to a person who may vote on it. */
async function showRequest(args: CommandArguments, io: Io): Promise<ExitCode> {
  const [run = '', digest] = args.operands;
  if (digest === undefined || !/^[0-9a-f]{64}$/u.test(digest)) {
    throw commandUsageError(approvals, `give RUN_ID and DIGEST, not ${quoteArgument(digest ?? run)} alone`);
  }
  const reading = { run, digest, ...parsePerson(approvals, args) };
  const request = await withHomeAccess(args, io, (home) => home.readRequest(reading));
  if (request === null) throw usageError(`${run} asks ${reading.actor} as ${reading.role} for no such approval`);
  await io.stdout.write(args.flag('json') ? jsonLine(request) : `${escapeText(JSON.stringify(request))}\n`);
  return 0;
}

function textOf(approval: PendingApproval, paint: Paint): string {
  const { run_id, digest, name, case_id, requested_by, requested_at, expires_at, votes, quorum } = approval;
  const roles = approval.approver_roles.join(' or ');
  const facts: readonly (readonly [string, string])[] = [
    ['asked for', `${name}${case_id === null ? '' : ` in case ${case_id}`}`],
    ['request', requestText(approval)],
    ['by', `${requested_by}, ${requested_at}`],
    ['votes', `${votes.length} of ${quorum}, by ${roles}`],
    ...votes.map(({ actor_id, role_id, at }) => ['', `${actor_id} as ${role_id}, ${at}`] as const),
    ['until', expires_at],
  ];
  const rows = facts.map(([what, value]): TextCell[] => [
    { text: `  ${what}`, colour: 'dim' },
    { text: escapeText(value) },
  ]);
  return `${paint(escapeText(`${run_id} ${digest}`), 'bold')}\n${table(rows, paint)}`;
}

function requestText({ request, withheld, run_id, digest }: PendingApproval): string {
  if (request !== null) return JSON.stringify(request);
  if (withheld === null) return 'not in the ledger: do not approve it';
  const how = `turnpike approvals ${run_id} ${digest} --actor NAME --role ROLE`;
  return `withheld by its lane (sha256 ${withheld.sha256}, ${withheld.bytes} bytes): \`${how}\` shows it to an approver`;
}
