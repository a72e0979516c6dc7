import { AGENT_OPTIONS, runAgentCommand } from '../../agent-command.js';
import type { CliCommand } from '../../command.js';
import { linePayloads } from '../../payloads.js';

/** `turnpike run`: each line is one raw payload. */
export const run: CliCommand = {
  name: 'run',
  summary: 'Take the lines of a file through the gates, each of them one proposal; one response line each',
  operands: { usage: 'FILE.jsonl', min: 1, max: 1 },
  options: AGENT_OPTIONS,
  notes: [
    'Reads line by line, `-` from stdin; each response is out before the next line is taken, so that an agent can',
    'answer to it. Ends with FINISH or with the end of the input. Responses are on stdout, how the run ended on stderr.',
    'A denied proposal is no error: the exit code is 1 only when the run itself was denied, failed or cancelled.',
  ],
  async run(args, io) {
    const [file = '-'] = args.operands;
    if (file === '-' && io.stdinIsTTY) await io.stderr.writeLine('one proposal a line; Ctrl-D ends the input');
    return runAgentCommand(run, args, await linePayloads(file, io), io);
  },
};
