import type { Resolution } from '../../../runtime/high-risk-options.js';
import { quoteArgument, commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CommandArguments, CliCommand } from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { parsePerson, PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const OUTCOMES: Readonly<Record<string, Resolution['outcome']>> = { done: 'done', 'not-executed': 'not_executed' };
const NOTE_CHARS_MAX = 400;

/** `turnpike runs resolve`: records what an operator found out about an action with an unknown outcome (D8). */
export const runsResolve: CliCommand = {
  name: 'runs resolve',
  access: 'write',
  summary: 'Settle an action with an unknown outcome: record what you found out',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    { name: 'outcome', value: 'WHAT', help: `${Object.keys(OUTCOMES).join(' or ')}: whether the action was executed` },
    ...PERSON_OPTIONS,
    { name: 'note', value: 'TEXT', help: `how you found out, for the audit; up to ${NOTE_CHARS_MAX} characters` },
  ],
  notes: [
    '`turnpike runs` marks the runs that need this. The run stays failed as OUTCOME_UNKNOWN; your statement is a later',
    'audit entry under your name. After it, the agent, if its run is still active, may propose the same action again.',
  ],
  async run(args, io) {
    const resolution = parseResolution(args);
    await withHomeAccess(args, io, (home) => home.resolve(resolution));
    const { run, outcome } = resolution;
    await io.stdout.write(
      args.flag('json') ? jsonLine(resolution) : `${escapeText(`${run} is settled: ${outcome}`)}\n`,
    );
    return 0;
  },
};

function parseResolution(args: CommandArguments): Resolution {
  const [run = ''] = args.operands;
  const [outcomeText = '', note] = [args.text('outcome'), args.text('note')];
  const outcome = Object.hasOwn(OUTCOMES, outcomeText) ? OUTCOMES[outcomeText] : undefined;
  if (outcome === undefined)
    throw commandUsageError(
      runsResolve,
      `--outcome takes ${Object.keys(OUTCOMES).join(' or ')}, not ${quoteArgument(outcomeText)}`,
    );
  if (note !== undefined && note.length > NOTE_CHARS_MAX)
    throw commandUsageError(runsResolve, `--note has more than ${NOTE_CHARS_MAX} characters`);
  return { run, outcome, ...parsePerson(runsResolve, args), ...(note === undefined ? {} : { note }) };
}
