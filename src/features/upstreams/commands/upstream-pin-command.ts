import type { UpstreamPins } from '../../../core/contract/policy/upstreams.js';
import type { UpstreamSurvey, SurveyedTool } from '../connect-upstreams.js';
import { writePins } from '../upstream-files.js';
import { quoteArgument, commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { displayPath } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { printProblems, withUpstreams, type UpstreamState } from './upstream-state.js';

type PinnedTools = UpstreamPins['pins'];

/** `turnpike upstream pin`: accepts the present definitions of tools of upstream servers. */
export const upstreamPin: CliCommand = {
  name: 'upstream pin',
  access: 'none',
  summary: 'Pin the present definitions of tools of upstream MCP servers: write upstream-pins.json',
  operands: { usage: ' [NAME[=SHA256]...]', min: 0, max: 1_000 },
  options: [],
  notes: [
    'NAME is a tool (server.tool) or a server. Without NAME, the command pins every tool of every server, and removes',
    'the pins of tools that their server no longer lists. NAME=SHA256 pins a tool only if its definition has this',
    'hash, as `turnpike upstream list --json` printed it. A running process keeps the tools that it started with.',
  ],
  async run(args, io) {
    const requests = args.operands.map(parsePinRequest);
    return withUpstreams(args, io, async (found) => {
      const refused = requests.flatMap((one) => findPinProblems(one, found.survey));
      for (const why of refused) await io.stderr.writeLine(escapeText(why));
      if (refused.length > 0) return 1;
      const { pins, lines } = updatePins(found, requests);
      const path = writePins(found.contract, pins);
      const text = `${lines.join('')}pinned in ${escapeText(displayPath(path, io))}\n`;
      await io.stdout.write(args.flag('json') ? jsonLine({ version: 1, pins } satisfies UpstreamPins) : text);
      if (requests.length > 0) return 0;
      const unreachable = found.survey.problems.filter(
        ({ problem }) => problem === 'unreachable' || problem === 'unusable',
      );
      await printProblems(unreachable, io);
      return unreachable.length === 0 ? 0 : 1;
    });
  },
};

interface PinRequest {
  readonly name: string;
  /** The required hash of its definition; null accepts any. */
  readonly sha256: string | null;
}

function parsePinRequest(operand: string): PinRequest {
  const [name = '', sha256, ...more] = operand.split('=');
  if (more.length > 0 || name === '' || (sha256 !== undefined && !/^[0-9a-f]{64}$/u.test(sha256))) {
    throw commandUsageError(upstreamPin, `${quoteArgument(operand)} is neither NAME nor NAME=SHA256`);
  }
  return { name, sha256: sha256 ?? null };
}

const isRequested = ({ name }: PinRequest, tool: SurveyedTool): boolean => tool.name === name || tool.server === name;

/** Why the requested tools cannot be pinned, one line each. */
function findPinProblems(requests: PinRequest, { tools, problems }: UpstreamSurvey): readonly string[] {
  const matching = tools.filter((tool) => isRequested(requests, tool));
  if (matching.length === 0) {
    const problem = problems.find(
      ({ tool, server }) => tool === requests.name || (tool === null && server === requests.name),
    );
    return [problem?.message ?? `no server lists ${requests.name}`];
  }
  const others = matching.filter(({ sha256 }) => requests.sha256 !== null && sha256 !== requests.sha256);
  return others.map(({ name, sha256 }) => `${name} does not match the given hash: its definition is ${sha256}`);
}

/** The new pins, and a description of each change. Pins of unreachable servers stay. */
function updatePins(
  found: UpstreamState,
  requests: readonly PinRequest[],
): { readonly pins: PinnedTools; readonly lines: readonly string[] } {
  const { tools, problems } = found.survey;
  const all = requests.length === 0;
  const chosen = tools.filter((tool) => all || requests.some((one) => isRequested(one, tool)));
  const unlisted = all
    ? problems.flatMap(({ problem, tool }) => (problem === 'missing' && tool !== null ? [tool] : []))
    : [];
  const remaining = Object.entries(found.pins).filter(([name]) => !unlisted.includes(name));
  return {
    pins: Object.fromEntries([...remaining, ...chosen.map(({ name, sha256 }) => [name, sha256] as const)]),
    lines: [
      ...chosen.map(({ name, state, sha256 }) => `${sha256}  ${escapeText(name)}${STATE_SUFFIXES[state]}\n`),
      ...unlisted.map((name) => `${escapeText(name)} is no longer listed by its server; pin removed\n`),
    ],
  };
}

const STATE_SUFFIXES = { pinned: '', new: '  new', changed: '  changed' } as const;
