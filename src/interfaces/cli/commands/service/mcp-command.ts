import { omitUndefined } from '../../../../core/omit-undefined.js';
import { drawToken, storeToken } from '../../../../stores/keys/access-token.js';
import type { McpService } from '../../../mcp/index.js';
import { AGENT_OPTIONS, agentOptionsOf } from '../../agent-command.js';
import { isLoopback } from '../../../../core/contract/safe-url.js';
import { parseHostPort, quoteArgument } from '../../arguments.js';
import { defineCommand, type CliCommand, type ArgumentsOf, type CommandOption, type ExitCode } from '../../command.js';
import { withHomeAccess, type HomeAccess } from '../../home-access.js';
import { TOOL_OPTIONS } from '../../options/added-options.js';
import { findContractFolder, homeOf } from '../../options/folders.js';
import {
  LEDGER_FAILURE_OPTION,
  networkOf,
  NETWORK_OPTIONS,
  NEW_RUNS_OPTION,
  REPORT_OPTIONS,
  withServiceLife,
  type ServiceLife,
} from '../../options/service-options.js';

const ADDRESS_DEFAULT = '127.0.0.1:7390';

const OPTIONS = [
  ...AGENT_OPTIONS,
  { name: 'http', help: `serve over HTTP at HOST:PORT (default ${ADDRESS_DEFAULT}) instead of stdin and stdout` },
  { name: 'remote', help: 'allow a HOST that other machines can reach; use --tls-cert, or a proxy' },
  ...NETWORK_OPTIONS,
  ...(TOOL_OPTIONS?.mcp.middle ?? []),
  NEW_RUNS_OPTION,
  LEDGER_FAILURE_OPTION,
  ...REPORT_OPTIONS,
  ...(TOOL_OPTIONS?.mcp.end ?? []),
] as const satisfies readonly CommandOption[];

type McpArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike mcp`: lets agents propose and work through specs over the Model Context Protocol. */
export const mcp: CliCommand = defineCommand({
  name: 'mcp',
  access: 'write',
  section: 'mcp',
  operandKey: 'address',
  summary: 'Serve agents over MCP: one on stdin and stdout, or many over HTTP',
  operands: { usage: '[HOST:PORT]', min: 0, max: 1 },
  options: OPTIONS,
  notes: [
    'On stdin and stdout, the agent run ends when the input ends. If this process is killed, the run stays active, and',
    'the next `turnpike mcp` of the same agent continues it. Over HTTP, every request needs the bearer token that the',
    'command generates at the start and stores in the file mcp-token of the home directory.',
  ],
  async run(args, io) {
    const { http, newRunsMax } = args.values;
    const address = http ? parseAddress(args) : null;
    if (address === null && args.operands.length > 0) throw args.usageError('HOST:PORT needs --http');
    const agent = agentOptionsOf(args);
    const toolOptions = TOOL_OPTIONS?.parse(args);
    const serve = async (home: HomeAccess, life: ServiceLife): Promise<ExitCode> => {
      // Loaded here, because no other command needs it.
      const { mcpService } = await import('../../../mcp/index.js');
      const { localTurnpike: here } = home;
      const policy = here === null ? { contract: findContractFolder(args, io).path } : { policy: () => here.policy() };
      const limit = omitUndefined({ newRunsMax });
      const service = mcpService({
        turnpike: home.turnpike,
        ...policy,
        agent,
        log: life.io.log,
        ...toolOptions,
        ...limit,
      });
      return address === null
        ? serveOverStdio(service, home, args, life)
        : serveOverHttp(service, home, address, args, life);
    };
    return withServiceLife(args, io, (life) =>
      withHomeAccess(args, life.io, (home) => serve(home, life), {
        upstreams: true,
        reaction: life.reaction,
        telemetry: life.telemetry,
      }),
    );
  },
});

async function serveOverStdio(
  service: McpService,
  home: HomeAccess,
  args: McpArguments,
  { io, stop }: ServiceLife,
): Promise<ExitCode> {
  const { serveStdio } = await import('../../../mcp/index.js');
  if (io.stdinIsTTY) await io.stderr.writeLine('waiting for an MCP client on stdin and stdout');
  const ending = await serveStdio(service, {
    input: io.stdin as AsyncIterable<Uint8Array>,
    write: (text) => io.stdout.write(text),
    stop: stop(),
    note: home.localTurnpike === null ? null : homeOf(args, io).mcpRun,
  });
  return ending === 'too_large' ? 1 : 0;
}

async function serveOverHttp(
  service: McpService,
  home: HomeAccess,
  address: Address,
  args: McpArguments,
  { io, waitForEnd }: ServiceLife,
): Promise<ExitCode> {
  const { serveHttp } = await import('../../../mcp/index.js');
  const token = drawToken();
  const server = await serveHttp(service, { ...address, ...networkOf(args.values), token });
  // The token file belongs to the process that owns the home; a second server of the same home prints its token once
  // instead.
  const path = homeOf(args, io).mcpToken;
  let forget = (): void => undefined;
  try {
    if (home.localTurnpike !== null) forget = storeToken(path, token);
    await io.stderr.writeLine(
      `${server.url}\n${home.localTurnpike === null ? `bearer token ${token}` : `bearer token in ${path}`}`,
    );
    await waitForEnd();
  } finally {
    await server.close();
    forget();
  }
  return 0;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** @throws UsageError for an invalid address, and for a non-local one without the option that permits it */
function parseAddress(args: McpArguments): Address {
  const [text = ADDRESS_DEFAULT] = args.operands;
  const address = parseHostPort(text);
  if (address === null) throw args.usageError(`${quoteArgument(text)} is not a valid HOST:PORT`);
  if (isLoopback(address.host) || args.values.remote) return address;
  throw args.usageError(`other machines can reach ${quoteArgument(address.host)}: add --remote to allow that`);
}
