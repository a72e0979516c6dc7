import { AGENT_OPTIONS, runAgentCommand } from '../../agent-command.js';
import type { CliCommand } from '../../command.js';
import { filePayloads } from '../../payloads.js';

/** `turnpike step`: each file is one raw payload. */
export const step: CliCommand = {
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
  run: async (args, io) => runAgentCommand(step, args, await filePayloads(args.operands, io), io),
};
