import type { UpstreamPins } from '../../contract/upstreams.js';
import type { Survey, SurveyedTool } from '../../runtime/upstream/connect-upstreams.js';
import { writePins } from '../../runtime/upstream/upstream-files.js';
import { quoted, wrong } from '../arguments.js';
import type { Command } from '../command.js';
import { shownPath } from '../folders.js';
import { escaped, jsonLine } from '../terminal.js';
import { tellProblems, withUpstreams, type LookedAt } from '../upstreams.js';

type Pins = UpstreamPins['pins'];

/** `turnpike upstream pin`: accepts tools of upstream servers as they are now. */
export const upstreamPin: Command = {
  name: 'upstream pin',
  summary: 'Accept tools of upstream MCP servers as they are now: write upstream-pins.json',
  operands: { usage: ' [NAME[=SHA256]...]', min: 0, max: 1_000 },
  options: [],
  notes: [
    'NAME is a tool (server.tool) or a server. Without one, every tool of every server is pinned, and pins of tools that',
    'a server lists no more are taken away. NAME=SHA256 pins a tool only if its definition is the one that was looked at',
    'with `turnpike upstream list --json`. A process that runs keeps the tools that it began with.',
  ],
  async run(args, io) {
    const wanted = args.operands.map(wantedOf);
    return withUpstreams(args, io, async (found) => {
      const refused = wanted.flatMap((one) => whyNot(one, found.survey));
      for (const why of refused) await io.stderr.say(escaped(why));
      if (refused.length > 0) return 1;
      const { pins, lines } = pinned(found, wanted);
      const path = writePins(found.contract, pins);
      const text = `${lines.join('')}pinned in ${escaped(shownPath(path, io))}\n`;
      await io.stdout.write(args.flag('json') ? jsonLine({ version: 1, pins } satisfies UpstreamPins) : text);
      if (wanted.length > 0) return 0;
      const lost = found.survey.problems.filter(({ problem }) => problem === 'unreachable' || problem === 'unusable');
      await tellProblems(lost, io);
      return lost.length === 0 ? 0 : 1;
    });
  },
};

interface Wanted {
  readonly name: string;
  /** What its definition must be. */
  readonly sha256: string | null;
}

function wantedOf(operand: string): Wanted {
  const [name = '', sha256, ...more] = operand.split('=');
  if (more.length > 0 || name === '' || (sha256 !== undefined && !/^[0-9a-f]{64}$/u.test(sha256))) {
    throw wrong(upstreamPin, `${quoted(operand)} is neither NAME nor NAME=SHA256`);
  }
  return { name, sha256: sha256 ?? null };
}

const means = ({ name }: Wanted, tool: SurveyedTool): boolean => tool.name === name || tool.server === name;

/** Why what is wanted cannot be pinned, in a line each. */
function whyNot(wanted: Wanted, { tools, problems }: Survey): readonly string[] {
  const meant = tools.filter((tool) => means(wanted, tool));
  if (meant.length === 0) {
    const said = problems.find(({ tool, server }) => tool === wanted.name || (tool === null && server === wanted.name));
    return [said?.message ?? `no server lists ${wanted.name}`];
  }
  const others = meant.filter(({ sha256 }) => wanted.sha256 !== null && sha256 !== wanted.sha256);
  return others.map(({ name, sha256 }) => `${name} is not what was looked at: its definition is ${sha256}`);
}

/** The pins as they shall be, and what becomes of each in words. Pins of servers that were not reached stay. */
function pinned(
  found: LookedAt,
  wanted: readonly Wanted[],
): { readonly pins: Pins; readonly lines: readonly string[] } {
  const { tools, problems } = found.survey;
  const all = wanted.length === 0;
  const chosen = tools.filter((tool) => all || wanted.some((one) => means(one, tool)));
  const gone = all
    ? problems.flatMap(({ problem, tool }) => (problem === 'missing' && tool !== null ? [tool] : []))
    : [];
  const kept = Object.entries(found.pins).filter(([name]) => !gone.includes(name));
  return {
    pins: Object.fromEntries([...kept, ...chosen.map(({ name, sha256 }) => [name, sha256] as const)]),
    lines: [
      ...chosen.map(({ name, state, sha256 }) => `${sha256}  ${escaped(name)}${SAID[state]}\n`),
      ...gone.map((name) => `${escaped(name)} is listed no more, and not pinned any more\n`),
    ],
  };
}

const SAID = { pinned: '', new: '  new', changed: '  changed' } as const;
