import { rejectionWithoutSession } from '../rules/command-answer.js';
import { findTaskDetails } from '../session-reader.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { parseId, splitOperands, withSession } from './session-options.js';
import { taskText, printAnswer } from './session-text.js';
import { jsonLine, createPainter } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike session prepare`: prints all that the spec says about a task (S3-20). */
export const sessionPrepare: CliCommand = {
  name: 'session prepare',
  access: 'write',
  summary: 'Print everything that the spec says about a task',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [{ name: 'task', value: 'ID', help: 'the task (default: the task of the outstanding step)' }],
  notes: ['Needs no lock.'],
  async run(args, io) {
    const { session } = splitOperands(sessionPrepare, args);
    const named = args.text('task');
    const task_id = named === undefined ? undefined : parseId(sessionPrepare, 'task', named);
    return withSession(session, args, io, async ({ state }) => {
      if (state === null) return printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION'), args, io);
      const task = findTaskDetails(state, task_id);
      if (task === null) return printAnswer(rejectionWithoutSession('NOT_FOUND', ['task']), args, io);
      await io.stdout.write(args.flag('json') ? jsonLine(task) : taskText(task, createPainter(io.colours)));
      return 0;
    });
  },
};
