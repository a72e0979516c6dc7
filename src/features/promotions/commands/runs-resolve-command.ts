import { omitUndefined } from '../../../core/omit-undefined.js';
import { defineCommand, type CliCommand } from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { wordType } from '../../../interfaces/cli/option-types.js';
import { PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const OUTCOMES = { done: 'done', 'not-executed': 'not_executed' } as const;
const WORDS = ['done', 'not-executed'] as const satisfies readonly (keyof typeof OUTCOMES)[];
const NOTE_CHARS_MAX = 400;

/** `turnpike runs resolve`: records what an operator found out about an action with an unknown outcome (D8). */
export const runsResolve: CliCommand = defineCommand({
  name: 'runs resolve',
  access: 'write',
  summary: 'Settle an action with an unknown outcome: record what you found out',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    {
      name: 'outcome',
      value: 'WHAT',
      type: wordType(WORDS, ' or '),
      // Without it, the error message says what it takes.
      default: '',
      help: `${WORDS.join(' or ')}: whether the action was executed`,
    },
    ...PERSON_OPTIONS,
    { name: 'note', value: 'TEXT', help: `how you found out, for the audit; up to ${NOTE_CHARS_MAX} characters` },
  ],
  notes: [
    '`turnpike runs` marks the runs that need this. The run stays failed as OUTCOME_UNKNOWN; your statement is a later',
    'audit entry under your name. After it, the agent, if its run is still active, may propose the same action again.',
  ],
  async run(args, io) {
    const [run = ''] = args.operands;
    const { actor, role, note, json } = args.values;
    if (note !== undefined && note.length > NOTE_CHARS_MAX)
      throw args.usageError(`--note has more than ${NOTE_CHARS_MAX} characters`);
    const outcome = OUTCOMES[args.values.outcome];
    const resolution = { run, outcome, actor, role, ...omitUndefined({ note }) };
    await withHomeAccess(args, io, ({ turnpike }) => turnpike.resolve(resolution));
    await io.stdout.write(json ? jsonLine(resolution) : `${escapeText(`${run} is settled: ${outcome}`)}\n`);
    return 0;
  },
});
