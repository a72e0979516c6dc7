import { refusalWithout } from '../../session/answer.js';
import { taskDetails } from '../../runtime/sessions/session-reader.js';
import type { Command } from '../command.js';
import { idOf, operandsOf, withSession } from '../session-speaker.js';
import { taskText, tellAnswer } from '../session-text.js';
import { jsonLine, painter } from '../terminal.js';

/** `turnpike session prepare`: all that the spec says of a task (S3-20). */
export const sessionPrepare: Command = {
  name: 'session prepare',
  summary: 'Show a task of a session in full',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [{ name: 'task', value: 'ID', help: 'the task (default: that of the outstanding step)' }],
  notes: ['Needs no lock.'],
  async run(args, io) {
    const { session } = operandsOf(sessionPrepare, args);
    const named = args.text('task');
    const task_id = named === undefined ? undefined : idOf(sessionPrepare, 'task', named);
    return withSession(session, args, io, async ({ state }) => {
      if (state === null) return tellAnswer(refusalWithout('NO_ACTIVE_SESSION'), args, io);
      const task = taskDetails(state, task_id);
      if (task === null) return tellAnswer(refusalWithout('NOT_FOUND', ['task']), args, io);
      await io.stdout.write(args.flag('json') ? jsonLine(task) : taskText(task, painter(io.colours)));
      return 0;
    });
  },
};
