import { usageError } from '../../../core/errors.js';
import { systemClock } from '../../../system/system-clock.js';
import type { PendingApproval } from '../../../runtime/ledger/ledger-reader.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import {
  defineCommand,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import { withLedger } from '../../../interfaces/cli/options/folders.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { type Io } from '../../../interfaces/cli/io.js';
import { PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import {
  escapeText,
  jsonLine,
  createPainter,
  table,
  type TextCell,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';

const [ACTOR, ROLE] = PERSON_OPTIONS;
/** The person who is shown a request. */
const OPTIONS = [
  { ...ACTOR, required: false },
  { ...ROLE, required: false },
] as const satisfies readonly CommandOption[];

/** `turnpike approvals`: lists pending approvals and the votes so far (D7). */
export const approvals: CliCommand = defineCommand({
  name: 'approvals',
  access: 'read',
  accessWith: [{ given: 'operands', access: 'write' }],
  summary: 'List pending approvals: the exact request, who requested it, and the votes so far',
  operands: { usage: '[RUN_ID DIGEST]', min: 0, max: 2 },
  options: OPTIONS,
  notes: [
    'Needs no lock. The command recomputes the digest from the request that it prints, so a vote for a digest is a',
    'vote for exactly this request. For a request that its lane withholds (withholds_content) it prints the hash; an',
    'approver sees the request with RUN_ID, DIGEST, --actor and --role, and the ledger records that. With --json: one',
    'pending request per line.',
  ],
  async run(args, io) {
    if (args.operands.length > 0) return showRequest(args, io);
    const paint = createPainter(io.colours);
    const now = new Date(systemClock().now()).toISOString();
    let count = 0;
    await withLedger(args, io, async ({ reader }) => {
      for await (const approval of reader.approvals(now)) {
        const text = args.values.json ? jsonLine(approval) : textOf(approval, paint);
        await io.stdout.write(args.values.json || count === 0 ? text : `\n${text}`);
        count += 1;
      }
    });
    if (count === 0) await io.stderr.writeLine('no pending approvals');
    return 0;
  },
});

/** Shows one request to a person who may vote on it. */
async function showRequest(args: ArgumentsOf<typeof OPTIONS>, io: Io): Promise<ExitCode> {
  const [run = '', digest] = args.operands;
  if (digest === undefined || !/^[0-9a-f]{64}$/u.test(digest)) {
    throw args.usageError(`give both RUN_ID and DIGEST, not only ${quoteArgument(digest ?? run)}`);
  }
  const { actor, role, json } = args.values;
  if (actor === undefined) throw args.usageError('--actor is missing');
  if (role === undefined) throw args.usageError('--role is missing');
  const reading = { run, digest, actor, role };
  const request = await withHomeAccess(args, io, ({ turnpike }) => turnpike.readRequest(reading));
  if (request === null) throw usageError(`${run} has no such request that ${actor} as ${role} may approve`);
  await io.stdout.write(json ? jsonLine(request) : `${escapeText(JSON.stringify(request))}\n`);
  return 0;
}

function textOf(approval: PendingApproval, paint: Paint): string {
  const { run_id, digest, name, case_id, requested_by, requested_at, expires_at, votes, quorum } = approval;
  const roles = approval.approver_roles.join(' or ');
  const facts: readonly (readonly [string, string])[] = [
    ['operation', `${name}${case_id === null ? '' : ` in case ${case_id}`}`],
    ['request', requestText(approval)],
    ['by', `${requested_by}, ${requested_at}`],
    ['votes', `${votes.length} of ${quorum}, by ${roles}`],
    ...votes.map(({ actor_id, role_id, at }) => ['', `${actor_id} as ${role_id}, ${at}`] as const),
    ...(approval.conditions ?? []).map(({ id, message }) => ['asked by', conditionText(id, message)] as const),
    ['until', expires_at],
  ];
  const rows = facts.map(([what, value]): TextCell[] => [
    { text: `  ${what}`, colour: 'dim' },
    { text: escapeText(value) },
  ]);
  return `${paint(escapeText(`${run_id} ${digest}`), 'bold')}\n${table(rows, paint)}`;
}

const conditionText = (id: string, message: string | null): string => (message === null ? id : `${id}: ${message}`);

function requestText({ request, withheld, run_id, digest }: PendingApproval): string {
  if (request !== null) return JSON.stringify(request);
  if (withheld === null) return 'not in the ledger: do not approve it';
  const how = `turnpike approvals ${run_id} ${digest} --actor NAME --role ROLE`;
  return `withheld by its lane (sha256 ${withheld.sha256}, ${withheld.bytes} bytes): \`${how}\` shows it to an approver`;
}
