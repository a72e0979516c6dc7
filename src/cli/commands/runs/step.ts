import { AGENT_OPTIONS, runAgentCommand } from '../../agent-command.js';
import type { CliCommand } from '../../command.js';
import { filePayloads } from '../../payloads.js';

/** `turnpike step`: each file is one raw payload. */
export const step: CliCommand = {
  name: 'step',
  summary: 'Take files through the gates, each of them one proposal; one response line each',
  operands: { usage: 'FILE...', min: 1, max: 10_000 },
  options: AGENT_OPTIONS,
  notes: [
    'The bytes of a file (`-`: of stdin) are the payload, as they are. All are steps of one agent run, which then',
    'ends as end_of_input. Responses are on stdout, how the run ended on stderr. A denied proposal is no error: the',
    'exit code is 1 only when the run itself was denied, failed or cancelled.',
  ],
  run: async (args, io) => runAgentCommand(step, args, await filePayloads(args.operands, io), io),
};
