import { NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import { listSessions, toSessionSummary } from './session-options.js';
import { sessionRows } from './session-text.js';
import { jsonLine, createPainter, table } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike session list`: lists sessions. */
export const sessionList: CliCommand = {
  name: 'session list',
  access: 'read',
  summary: 'List the sessions with their specs and status',
  operands: NO_OPERANDS,
  options: [
    { name: 'active', help: 'only sessions that are neither completed nor ended' },
    { name: 'spec', value: 'ID', help: 'only sessions of this spec' },
  ],
  notes: ['The newest session comes last. Needs no lock. With --json: one session per line.'],
  async run(args, io) {
    const found = await listSessions({ active: args.flag('active') }, args, io);
    const spec = args.text('spec');
    const sessions = found.map(toSessionSummary).filter(({ spec_id }) => spec === undefined || spec_id === spec);
    if (args.flag('json')) for (const session of sessions) await io.stdout.write(jsonLine(session));
    else await io.stdout.write(table(sessionRows(sessions), createPainter(io.colours)));
    if (sessions.length === 0) await io.stderr.writeLine('no sessions: `turnpike session start SPEC` starts one');
    return 0;
  },
};
