import { systemClock } from '../../adapters/system-clock.js';
import type { OpenApproval } from '../../runtime/ledger-reader.js';
import { NO_OPERANDS, type Command } from '../command.js';
import { withLedger } from '../folders.js';
import { escaped, jsonLine, painter, table, type Cell, type Paint } from '../terminal.js';

/** `turnpike approvals`: what people are asked to approve, and what they have said so far (D7). */
export const approvals: Command = {
  name: 'approvals',
  summary: 'Show what waits for approval: what exactly is asked, by whom, and the votes so far',
  operands: NO_OPERANDS,
  options: [],
  notes: [
    'Needs no lock. What is shown as the request has been made into its digest once more, so that whoever approves the',
    'digest approves exactly that. With --json: one open request a line.',
  ],
  async run(args, io) {
    const paint = painter(io.colours);
    const now = new Date(systemClock().now()).toISOString();
    let count = 0;
    await withLedger(args, io, async ({ reader }) => {
      for await (const approval of reader.approvals(now)) {
        const text = args.flag('json') ? jsonLine(approval) : textOf(approval, paint);
        await io.stdout.write(args.flag('json') || count === 0 ? text : `\n${text}`);
        count += 1;
      }
    });
    if (count === 0) await io.stderr.say('nothing waits for approval');
    return 0;
  },
};

function textOf(approval: OpenApproval, paint: Paint): string {
  const { run_id, digest, name, case_id, request, requested_by, requested_at, expires_at, votes, quorum } = approval;
  const roles = approval.approver_roles.join(' or ');
  const facts: readonly (readonly [string, string])[] = [
    ['asked for', `${name}${case_id === null ? '' : ` in case ${case_id}`}`],
    ['request', request === null ? 'not in the ledger: do not approve it' : JSON.stringify(request)],
    ['by', `${requested_by}, ${requested_at}`],
    ['votes', `${votes.length} of ${quorum}, by ${roles}`],
    ...votes.map(({ actor_id, role_id, at }) => ['', `${actor_id} as ${role_id}, ${at}`] as const),
    ['until', expires_at],
  ];
  const rows = facts.map(([what, value]): Cell[] => [{ text: `  ${what}`, colour: 'dim' }, { text: escaped(value) }]);
  return `${paint(escaped(`${run_id} ${digest}`), 'bold')}\n${table(rows, paint)}`;
}
