import type { Resolution } from '../../runtime/high-risk/options.js';
import { quoted, wrong } from '../arguments.js';
import type { Args, Command } from '../command.js';
import { withHome } from '../held-home.js';
import { personOf, PERSON_OPTIONS } from '../people.js';
import { escaped, jsonLine } from '../terminal.js';

const OUTCOMES: Readonly<Record<string, Resolution['outcome']>> = { done: 'done', 'not-executed': 'not_executed' };
const NOTE_CHARS_MAX = 400;

/** `turnpike runs resolve`: what somebody has found out of an act whose outcome was unknown (D8). */
export const runsResolve: Command = {
  name: 'runs resolve',
  summary: 'Say what became of an act whose outcome nobody knew',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    { name: 'outcome', value: 'WHAT', help: `${Object.keys(OUTCOMES).join(' or ')}: what you have found out` },
    ...PERSON_OPTIONS,
    { name: 'note', value: 'TEXT', help: `how you know, for the audit; up to ${NOTE_CHARS_MAX} characters` },
  ],
  notes: [
    '`turnpike runs` marks the runs that this is for. The run stays failed as OUTCOME_UNKNOWN: what you say is a later',
    'line of the audit, under your name. After it the agent, if it still works, may ask for the same act again.',
  ],
  async run(args, io) {
    const resolution = resolutionOf(args);
    await withHome(args, io, (home) => home.resolve(resolution));
    const { run, outcome } = resolution;
    await io.stdout.write(args.flag('json') ? jsonLine(resolution) : `${escaped(`${run} is settled: ${outcome}`)}\n`);
    return 0;
  },
};

function resolutionOf(args: Args): Resolution {
  const [run = ''] = args.operands;
  const [asked = '', note] = [args.text('outcome'), args.text('note')];
  const outcome = Object.hasOwn(OUTCOMES, asked) ? OUTCOMES[asked] : undefined;
  if (outcome === undefined)
    throw wrong(runsResolve, `--outcome takes ${Object.keys(OUTCOMES).join(' or ')}, not ${quoted(asked)}`);
  if (note !== undefined && note.length > NOTE_CHARS_MAX)
    throw wrong(runsResolve, `--note has more than ${NOTE_CHARS_MAX} characters`);
  return { run, outcome, ...personOf(runsResolve, args), ...(note === undefined ? {} : { note }) };
}
