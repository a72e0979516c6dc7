import { join } from 'node:path';
import { UPSTREAMS_FILE, type UpstreamPins } from '../../../core/contract/policy/upstreams.js';
import { usageError } from '../../../core/errors.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import {
  NO_OPERANDS,
  type CliCommand,
  type CommandArguments,
  type CommandGroup,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { displayPath, findContractFolder } from '../../../interfaces/cli/options/folders.js';
import {
  createPainter,
  escapeText,
  jsonLine,
  shortenText,
  table,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';
import type { UpstreamProblem } from '../../../runtime/effects/tools-of-features.js';
import { systemClock } from '../../../system/system-clock.js';
import { surveyUpstreams, type SurveyedTool, type UpstreamSurvey } from '../connect-upstreams.js';
import { readUpstreams, writePins } from '../upstream-files.js';

const DESCRIPTION_CHARS = 80;

/** `turnpike upstream list`: lists the tools of upstream servers, and which of them are pinned. */
const upstreamList: CliCommand = {
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
      if (args.values.json) {
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

type PinnedTools = UpstreamPins['pins'];

/** `turnpike upstream pin`: accepts the present definitions of tools of upstream servers. */
const upstreamPin: CliCommand = {
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
    const requests = args.operands.map((operand) => parsePinRequest(operand, args));
    return withUpstreams(args, io, async (found) => {
      const refused = requests.flatMap((one) => findPinProblems(one, found.survey));
      for (const why of refused) await io.stderr.writeLine(escapeText(why));
      if (refused.length > 0) return 1;
      const { pins, lines } = updatePins(found, requests);
      const path = writePins(found.contract, pins);
      const text = `${lines.join('')}pinned in ${escapeText(displayPath(path, io))}\n`;
      await io.stdout.write(args.values.json ? jsonLine({ version: 1, pins } satisfies UpstreamPins) : text);
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

function parsePinRequest(operand: string, { usageError: error }: CommandArguments): PinRequest {
  const [name = '', sha256, ...more] = operand.split('=');
  if (more.length > 0 || name === '' || (sha256 !== undefined && !/^[0-9a-f]{64}$/u.test(sha256))) {
    throw error(`${quoteArgument(operand)} is neither NAME nor NAME=SHA256`);
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

interface UpstreamState {
  readonly contract: string;
  readonly pins: UpstreamPins['pins'];
  readonly survey: UpstreamSurvey;
}

/**
 * Connects to all servers and closes them after `work`, also when the command is stopped.
 * @throws UsageError if no servers are configured; PolicyError for unusable files
 */
async function withUpstreams<T>(
  args: CommandArguments,
  io: Io,
  work: (found: UpstreamState) => Promise<T>,
): Promise<T> {
  const { path, isChosen: chosen } = findContractFolder(args, io);
  if (!chosen)
    throw usageError('no contract folder: name one with --contract DIR, or create ./contract with `turnpike init`');
  const files = readUpstreams(path);
  const file = join(path, UPSTREAMS_FILE);
  if (files === null) throw usageError(`${displayPath(file, io)} is missing: it must list the upstream servers`);
  const { config, pins } = files;
  const signal = io.stop();
  const survey = await surveyUpstreams(config, pins, { clock: systemClock(), log: io.log, folder: path, signal });
  try {
    return await work({ contract: path, pins: pins.pins, survey });
  } finally {
    await survey.close();
  }
}

/** Prints problems to stderr, because they are not the requested output. */
async function printProblems(problems: readonly UpstreamProblem[], io: Io): Promise<void> {
  for (const { message } of problems) await io.stderr.writeLine(escapeText(message));
}

export const UPSTREAM_COMMANDS: readonly CommandGroup[] = [{ title: 'policy', commands: [upstreamList, upstreamPin] }];
