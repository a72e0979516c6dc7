import { NO_OPERANDS, type Command } from '../command.js';
import { sessionsOf, summaryOf } from '../session-speaker.js';
import { sessionRows } from '../session-text.js';
import { jsonLine, painter, table } from '../terminal.js';

/** `turnpike session list`: which sessions there are. */
export const sessionList: Command = {
  name: 'session list',
  summary: 'Show the sessions: their specs, and where they stand',
  operands: NO_OPERANDS,
  options: [
    { name: 'active', help: 'only those that are neither completed nor ended' },
    { name: 'spec', value: 'ID', help: 'only those of this spec' },
  ],
  notes: ['The newest comes last. Needs no lock. With --json: one session a line.'],
  async run(args, io) {
    const found = await sessionsOf({ active: args.flag('active') }, args, io);
    const spec = args.text('spec');
    const sessions = found.map(summaryOf).filter(({ spec_id }) => spec === undefined || spec_id === spec);
    if (args.flag('json')) for (const session of sessions) await io.stdout.write(jsonLine(session));
    else await io.stdout.write(table(sessionRows(sessions), painter(io.colours)));
    if (sessions.length === 0) await io.stderr.say('no session: `turnpike session start SPEC` starts one');
    return 0;
  },
};
