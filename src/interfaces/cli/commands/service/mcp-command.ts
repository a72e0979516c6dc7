import { drawToken, storeToken } from '../../../../stores/keys/access-token.js';
import type { McpService } from '../../../mcp/index.js';
import { AGENT_OPTIONS, parseAgentOptions } from '../../agent-command.js';
import { quoteArgument, commandUsageError, parseCount, parseHostPort } from '../../arguments.js';
import type { CommandArguments, CliCommand, ExitCode } from '../../command.js';
import { TOOL_OPTIONS } from '../../options/added-options.js';
import { findContractFolder, homeOf } from '../../options/folders.js';
import { NEW_RUNS_OPTION } from '../../options/new-runs.js';
import { REPORT_OPTIONS } from '../../options/report-options.js';
import { withHomeAccess, type HomeAccess } from '../../home-access.js';
import { NETWORK_OPTIONS, parseTlsOptions } from '../../options/tls-options.js';
import type { Io } from '../../io.js';
import { LEDGER_FAILURE_OPTION, withServiceLife, type ServiceLife } from '../../options/service-options.js';

const ADDRESS_DEFAULT = '127.0.0.1:7390';

/** `turnpike mcp`: lets agents propose and work through specs over the Model Context Protocol. */
export const mcp: CliCommand = {
  name: 'mcp',
  access: 'write',
  section: 'mcp',
  operandKey: 'address',
  summary: 'Serve agents over MCP: one on stdin and stdout, or many over HTTP',
  operands: { usage: '[HOST:PORT]', min: 0, max: 1 },
  options: [
    ...AGENT_OPTIONS,
    { name: 'http', help: `serve over HTTP at HOST:PORT (default ${ADDRESS_DEFAULT}) instead of stdin and stdout` },
    { name: 'remote', help: 'allow a HOST that other machines can reach; use --tls-cert, or a proxy' },
    ...NETWORK_OPTIONS,
    ...(TOOL_OPTIONS?.mcp.middle ?? []),
    NEW_RUNS_OPTION,
    LEDGER_FAILURE_OPTION,
    ...REPORT_OPTIONS,
    ...(TOOL_OPTIONS?.mcp.end ?? []),
  ],
  notes: [
    'On stdin and stdout, the agent run ends when the input ends. If this process is killed, the run stays active, and',
    'the next `turnpike mcp` of the same agent continues it. Over HTTP, every request needs the bearer token that the',
    'command generates at the start and stores in the file mcp-token of the home directory.',
  ],
  async run(args, io) {
    const address = args.flag('http') ? parseAddress(args) : null;
    if (address === null && args.operands.length > 0) throw commandUsageError(mcp, 'HOST:PORT needs --http');
    const agent = parseAgentOptions(mcp, args);
    const toolOptions = TOOL_OPTIONS?.parse(mcp, args, io);
    const newRunsMax = parseCount(mcp, args, NEW_RUNS_OPTION.name);
    const serve = async (home: HomeAccess, life: ServiceLife): Promise<ExitCode> => {
      // Loaded here, because no other command needs it.
      const { mcpService } = await import('../../../mcp/index.js');
      const { localTurnpike: here } = home;
      const policy = here === null ? { contract: findContractFolder(args, io).path } : { policy: () => here.policy() };
      const limit = newRunsMax === undefined ? {} : { newRunsMax };
      const service = mcpService({ turnpike: home, ...policy, agent, log: life.io.log, ...toolOptions, ...limit });
      return address === null
        ? serveOverStdio(service, home, args, life.io, life)
        : serveOverHttp(service, home, address, args, life.io, life);
    };
    return withServiceLife(mcp, args, io, (life) =>
      withHomeAccess(args, life.io, (home) => serve(home, life), {
        upstreams: true,
        reaction: life.reaction,
        telemetry: life.telemetry,
      }),
    );
  },
};

async function serveOverStdio(
  service: McpService,
  home: HomeAccess,
  args: CommandArguments,
  io: Io,
  life: ServiceLife,
): Promise<ExitCode> {
  const { serveStdio } = await import('../../../mcp/index.js');
  if (io.stdinIsTTY) await io.stderr.writeLine('waiting for an MCP client on stdin and stdout');
  const ending = await serveStdio(service, {
    input: io.stdin as AsyncIterable<Uint8Array>,
    write: (text) => io.stdout.write(text),
    stop: life.stop(),
    note: home.localTurnpike === null ? null : homeOf(args, io).mcpRun,
  });
  return ending === 'too_large' ? 1 : 0;
}

async function serveOverHttp(
  service: McpService,
  home: HomeAccess,
  address: Address,
  args: CommandArguments,
  io: Io,
  life: ServiceLife,
): Promise<ExitCode> {
  const { serveHttp } = await import('../../../mcp/index.js');
  const token = drawToken();
  const [hosts, origins] = [args.list('allow-host'), args.list('allow-origin')];
  const server = await serveHttp(service, { ...address, ...parseTlsOptions(args, io), token, hosts, origins });
  // The token file belongs to the process that owns the home; a second server of the same home prints its token once
  // instead.
  const path = homeOf(args, io).mcpToken;
  let forget = (): void => undefined;
  try {
    if (home.localTurnpike !== null) forget = storeToken(path, token);
    await io.stderr.writeLine(
      `${server.url}\n${home.localTurnpike === null ? `bearer token ${token}` : `bearer token in ${path}`}`,
    );
    await life.waitForEnd();
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

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;

/** @throws UsageError for an invalid address, and for a non-local one without the option that permits it */
function parseAddress(args: CommandArguments): Address {
  const [text = ADDRESS_DEFAULT] = args.operands;
  const address = parseHostPort(text);
  if (address === null) throw commandUsageError(mcp, `${quoteArgument(text)} is not a valid HOST:PORT`);
  if (LOOPBACK.test(address.host) || args.flag('remote')) return address;
  throw commandUsageError(mcp, `other machines can reach ${quoteArgument(address.host)}: add --remote to allow that`);
}
