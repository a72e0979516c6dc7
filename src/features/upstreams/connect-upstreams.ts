// Connects to all upstream servers of a deployment, compares their tool definitions with the pins, and makes tools.

import { quoteForMessage, toPrintable } from '../../core/contract/finding-text.js';
import type { JsonObject } from '../../core/contract/json.js';
import {
  type UpstreamPins,
  type UpstreamsConfig,
  type UpstreamServer as Configured,
  UPSTREAMS_FILE,
} from '../../core/contract/policy/upstreams.js';
import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import type { Tool } from '../../runtime/effects/define-effects.js';
import type { AddedTools, UpstreamProblem, FeatureToolOptions } from '../../runtime/effects/tools-of-features.js';
import type { ToolListing } from './tool-definitions.js';
import { configProblem, readUpstreams } from './upstream-files.js';
import { UpstreamServerClient } from './upstream-server-client.js';
import { nameOf, upstreamTool } from './upstream-tool.js';
import { resolve } from 'node:path';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';

interface UpstreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** The contract folder. Relative folders of servers are resolved against it. */
  readonly folder: string;
  /** Aborts the survey and closes all connections. */
  readonly signal?: AbortSignal;
}

/** A tool that agents can call if its pin matches its definition. */
export interface SurveyedTool {
  readonly server: string;
  /** The name as lanes list it. */
  readonly name: string;
  readonly state: 'pinned' | 'new' | 'changed';
  readonly sha256: string;
  /** The complete definition as the server sent it. */
  readonly document: JsonObject;
  readonly tool: Tool;
}

export interface UpstreamSurvey {
  /** In the order of the configuration; sorted by name within a server. */
  readonly tools: readonly SurveyedTool[];
  readonly problems: readonly UpstreamProblem[];
  /** The servers that answered. */
  readonly reachedServers: readonly string[];
  close(): Promise<void>;
}

const NO_UPSTREAMS: AddedTools = { tools: [], problems: [], close: () => Promise.resolve() };

/**
 * Connects to the upstream servers of a deployment. An unreachable server is a problem in the result, not an error.
 * @throws UsageError if there is no upstreams.json
 * @throws PolicyError if a file cannot be used
 */
export async function openUpstreams(options: FeatureToolOptions): Promise<AddedTools> {
  const { upstreams = false, contract, clock = systemClock(), log = winstonLog('warn') } = options;
  if (upstreams === false) return NO_UPSTREAMS;
  const folder = upstreams === true ? contract : upstreams;
  if (folder === undefined) throw usageError('`upstreams: true` needs `contract`: the folder in which they are listed');
  const files = readUpstreams(resolve(folder));
  if (files === null) throw usageError(`${folder} has no ${UPSTREAMS_FILE}`);
  return connectUpstreams(files.config, files.pins, { clock, log, folder: resolve(folder) });
}

/**
 * Connects to every server of the configuration. A tool whose definition matches its pin becomes a tool of CALL_TOOL.
 * Every other tool is a problem and does not exist for agents. An unreachable server does not affect the others.
 * @throws UsageError if the configuration contradicts itself
 */
export async function connectUpstreams(
  config: UpstreamsConfig,
  pins: UpstreamPins,
  deps: UpstreamDeps,
): Promise<AddedTools> {
  const survey = await surveyUpstreams(config, pins, deps);
  for (const { server, tool, problem, message } of survey.problems) {
    deps.log.warn('an upstream tool is not available', { server, tool, problem, message });
  }
  const pinned = survey.tools.filter(({ state }) => state === 'pinned').map(({ tool }) => tool);
  return { tools: pinned, problems: survey.problems, close: () => survey.close() };
}

/** Like `connectUpstreams`, but returns every tool that can be pinned. */
export async function surveyUpstreams(
  config: UpstreamsConfig,
  pins: UpstreamPins,
  deps: UpstreamDeps,
): Promise<UpstreamSurvey> {
  const problem = configProblem(config);
  if (problem !== null) throw usageError(`the configuration of upstream servers: ${problem}`);
  const pairs = config.servers.map((configured) => [configured, new UpstreamServerClient(configured, deps)] as const);
  const close = async (): Promise<void> => {
    await Promise.all(pairs.map(([, server]) => server.close()));
  };
  deps.signal?.addEventListener('abort', () => void close(), { once: true });
  const found = await Promise.all(pairs.map(([configured, server]) => surveyServer(configured, server, pins)));
  return {
    tools: found.flatMap(({ tools }) => tools),
    problems: found.flatMap(({ problems }) => problems),
    reachedServers: found.flatMap(({ server, isReached }) => (isReached ? [server] : [])),
    close,
  };
}

interface ServerSurvey {
  readonly server: string;
  readonly isReached: boolean;
  readonly tools: readonly SurveyedTool[];
  readonly problems: readonly UpstreamProblem[];
}

async function surveyServer(
  configured: Configured,
  server: UpstreamServerClient,
  { pins }: UpstreamPins,
): Promise<ServerSurvey> {
  const { name } = configured;
  let listing: ToolListing;
  try {
    listing = await server.list();
  } catch (error) {
    // Ends the process that the server client may have started.
    await server.close();
    const message = toPrintable(`${name} cannot be used: ${(error as Error).message}`);
    const problems = [{ server: name, tool: null, problem: 'unreachable' as const, message }];
    return { server: name, isReached: false, tools: [], problems };
  }
  const { tools, problems } = classifyTools(configured, server, listing, pins);
  return { server: name, isReached: true, tools, problems: [...unusableProblems(listing, name), ...problems] };
}

const unusableProblems = ({ unusable }: ToolListing, server: string): readonly UpstreamProblem[] =>
  unusable.map(({ tool, why }) => {
    const label = tool === null ? `a tool of ${server}` : quoteForMessage(`${server}.${tool}`);
    return { server, tool: null, problem: 'unusable', message: `${label} is unusable: ${why}` };
  });

/** Sorts the definitions into usable tools and problems, and adds a problem for each pinned tool that is missing. */
function classifyTools(
  configured: Configured,
  server: UpstreamServerClient,
  { definitions }: ToolListing,
  pins: UpstreamPins['pins'],
): Pick<ServerSurvey, 'tools' | 'problems'> {
  const tools: SurveyedTool[] = [];
  const problems: UpstreamProblem[] = [];
  const addProblem = (tool: string, problem: UpstreamProblem['problem'], message: string): void =>
    void problems.push({ server: server.name, tool, problem, message });
  const names = definitions.map(({ tool }) => nameOf(configured, tool));
  for (const definition of definitions.toSorted((a, b) => (a.tool < b.tool ? -1 : 1))) {
    const name = nameOf(configured, definition.tool);
    const tool = upstreamTool(configured, definition, server);
    const isDuplicate = names.filter((other) => other === name).length > 1;
    if ('problem' in tool || isDuplicate) {
      const why = 'problem' in tool ? tool.problem : 'two tools have that name';
      addProblem(name, 'unusable', `${quoteForMessage(name)} is unusable: ${why}`);
      continue;
    }
    const { sha256, document } = definition;
    const state = stateOf(pins, name, sha256);
    if (state === 'new') addProblem(name, 'not_pinned', `${name} is not pinned`);
    if (state === 'changed') addProblem(name, 'changed', `${name} has changed since it was pinned`);
    tools.push({ server: server.name, name, state, sha256, document, tool });
  }
  for (const name of Object.keys(pins)) {
    const isOwnTool = name.startsWith(`${server.name}.`);
    if (isOwnTool && !names.includes(name))
      addProblem(name, 'missing', `${name} is pinned, but ${server.name} no longer lists it`);
  }
  return { tools, problems };
}

function stateOf(pins: UpstreamPins['pins'], name: string, sha256: string): SurveyedTool['state'] {
  const pinned = Object.hasOwn(pins, name) ? pins[name] : undefined;
  if (pinned === undefined) return 'new';
  return pinned === sha256 ? 'pinned' : 'changed';
}
