import type { SurveyedTool } from '../connect-upstreams.js';
import { NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import {
  escapeText,
  jsonLine,
  createPainter,
  shortenText,
  table,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';
import { printProblems, withUpstreams } from './upstream-state.js';

const DESCRIPTION_CHARS = 80;

/** `turnpike upstream list`: lists the tools of upstream servers, and which of them are pinned. */
export const upstreamList: CliCommand = {
  name: 'upstream list',
  access: 'none',
  summary: 'Connect to the upstream MCP servers, and list their tools and whether they are pinned',
  operands: NO_OPERANDS,
  options: [],
  notes: [
    'The servers are those of upstreams.json in the contract folder. A tool is pinned, new, or changed since it was',
    'pinned; agents can use only pinned tools. --json prints every definition in full, as its server sent it: read it',
    'before you pin it. Exits 1 if a tool is not pinned, or a server or tool is unavailable.',
  ],
  async run(args, io) {
    return withUpstreams(args, io, async ({ survey: { tools, problems } }) => {
      if (args.flag('json')) {
        for (const { name, server, state, sha256, document } of tools) {
          await io.stdout.write(jsonLine({ name, server, state, sha256, definition: document }));
        }
        for (const problem of problems) await io.stdout.write(jsonLine(problem));
      } else {
        await io.stdout.write(toolTable(tools, createPainter(io.colours)));
        await printProblems(
          problems.filter(({ problem }) => !IN_TABLE.includes(problem)),
          io,
        );
      }
      return problems.length === 0 ? 0 : 1;
    });
  },
};

/** Problems that the table shows as the state of a tool. */
const IN_TABLE = ['not_pinned', 'changed'];
const COLOURS = { pinned: 'green', new: 'yellow', changed: 'red' } as const;

const toolTable = (tools: readonly SurveyedTool[], paint: Paint): string =>
  table(
    tools.map(({ name, state, sha256, document }) => [
      { text: escapeText(name), colour: 'bold' as const },
      { text: state, colour: COLOURS[state] },
      { text: sha256 },
      { text: descriptionOf(document), colour: 'dim' as const },
    ]),
    paint,
  );

function descriptionOf({ description }: SurveyedTool['document']): string {
  return typeof description === 'string' ? shortenText(description, DESCRIPTION_CHARS) : '';
}
