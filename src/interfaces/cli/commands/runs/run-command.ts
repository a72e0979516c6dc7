import { AGENT_OPTIONS, runAgentCommand } from '../../agent-command.js';
import { defineCommand, type CliCommand } from '../../command.js';
import { filePayloads, linePayloads } from '../../payloads.js';

/** `turnpike run`: each line is one raw payload. */
export const run: CliCommand = defineCommand({
  name: 'run',
  access: 'write',
  summary: 'Submit each line of a file as a proposal of one agent run; prints one response line for each',
  operands: { usage: 'FILE.jsonl', min: 1, max: 1 },
  options: AGENT_OPTIONS,
  notes: [
    'Reads line by line (- reads stdin). Each response is printed before the next line is read, so an agent can react',
    'to it. The run ends with FINISH or at the end of the input. Responses go to stdout; the end of the run goes to',
    'stderr. A denied proposal is not an error: the exit code is 1 only if the run itself was denied, failed or',
    'cancelled.',
  ],
  async run(args, io) {
    const [file = '-'] = args.operands;
    if (file === '-' && io.stdinIsTTY) await io.stderr.writeLine('type one proposal per line; Ctrl-D ends the input');
    return runAgentCommand(args, await linePayloads(file, io), io);
  },
});

/** `turnpike step`: each file is one raw payload. */
export const step: CliCommand = defineCommand({
  name: 'step',
  access: 'write',
  summary: 'Submit each file as a proposal of one agent run; prints one response line for each',
  operands: { usage: 'FILE...', min: 1, max: 10_000 },
  options: AGENT_OPTIONS,
  notes: [
    'The bytes of a file (- reads stdin) are the payload, unchanged. All files are steps of one agent run, which then',
    'ends as end_of_input. Responses go to stdout; the end of the run goes to stderr. A denied proposal is not an',
    'error: the exit code is 1 only if the run itself was denied, failed or cancelled.',
  ],
  run: async (args, io) => runAgentCommand(args, await filePayloads(args.operands, io), io),
});
