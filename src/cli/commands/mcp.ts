import { resolve } from 'node:path';
import { drawToken, keepToken } from '../../adapters/access-token.js';
import { POSTURES, SESSION_ROLES } from '../../contract/session.js';
import type { McpService, SessionOptions } from '../../service/mcp/index.js';
import { AGENT_OPTIONS, agentOptionsOf } from '../agent-session.js';
import { quoted, wrong } from '../arguments.js';
import type { Args, Command, ExitCode } from '../command.js';
import { contractOf, homeOf } from '../folders.js';
import { withHome, type HeldHome } from '../held-home.js';
import type { Io } from '../io.js';

const ADDRESS_DEFAULT = '127.0.0.1:7390';

/** `turnpike mcp`: agents propose, and work through specs, over the Model Context Protocol. */
export const mcp: Command = {
  name: 'mcp',
  summary: 'Serve agents over MCP: one on stdin and stdout, or many over HTTP',
  operands: { usage: '[HOST:PORT]', min: 0, max: 1 },
  options: [
    ...AGENT_OPTIONS,
    { name: 'http', help: `serve over HTTP at HOST:PORT (default ${ADDRESS_DEFAULT}) instead of stdin and stdout` },
    { name: 'remote', help: 'let HOST be one that other machines reach; put TLS in front of it' },
    { name: 'allow-host', value: 'HOST', multiple: true, help: 'a further Host header to serve; may be repeated' },
    { name: 'allow-origin', value: 'URL', multiple: true, help: 'the origin of a page that may ask; may be repeated' },
    { name: 'specs', value: 'DIR', help: 'the specs that agents may work through, by their ids' },
    { name: 'inline-specs', help: 'agents may bring specs of their own: what those tell to run is run' },
    { name: 'session-role', value: 'ROLE', help: `as whom agents speak to sessions (default ${SESSION_ROLES[0]})` },
    { name: 'posture', value: 'HOW', help: `of sessions that agents start: ${POSTURES.join(', ')}` },
  ],
  notes: [
    'On stdin and stdout the run of the agent ends with the input. When this process is killed, the run lives on, and the',
    'next `turnpike mcp` of the same agent goes on with it. Over HTTP, every request needs the bearer token that is drawn',
    'at the start and kept in the file mcp-token of the home.',
  ],
  async run(args, io) {
    const address = args.flag('http') ? addressOf(args) : null;
    if (address === null && args.operands.length > 0) throw wrong(mcp, 'HOST:PORT needs --http');
    const agent = agentOptionsOf(mcp, args);
    const sessions = sessionsOf(args, io);
    const serve = async (home: HeldHome): Promise<ExitCode> => {
      // Loaded now, since no other command needs it.
      const { mcpService } = await import('../../service/mcp/index.js');
      const { here } = home;
      const policy = here === null ? { contract: contractOf(args, io).path } : { policy: () => here.policy() };
      const service = mcpService({ turnpike: home, ...policy, agent, log: io.log, sessions });
      return address === null ? onStreams(service, home, args, io) : overHttp(service, home, address, args, io);
    };
    return withHome(args, io, serve, { upstreams: true });
  },
};

async function onStreams(service: McpService, home: HeldHome, args: Args, io: Io): Promise<ExitCode> {
  const { serveStdio } = await import('../../service/mcp/index.js');
  if (io.stdinIsTTY) await io.stderr.say('an MCP client is expected on stdin and stdout');
  const leaving = await serveStdio(service, {
    input: io.stdin as AsyncIterable<Uint8Array>,
    write: (text) => io.stdout.write(text),
    stop: io.stop(),
    note: home.here === null ? null : homeOf(args, io).mcpRun,
  });
  return leaving === 'too_large' ? 1 : 0;
}

async function overHttp(service: McpService, home: HeldHome, address: Address, args: Args, io: Io): Promise<ExitCode> {
  const { serveHttp } = await import('../../service/mcp/index.js');
  const token = drawToken();
  const [hosts, origins] = [args.list('allow-host'), args.list('allow-origin')];
  const server = await serveHttp(service, { ...address, token, hosts, origins });
  // Whoever holds the home has the file; another server of the same home says its token once.
  const path = homeOf(args, io).mcpToken;
  let forget = (): void => undefined;
  try {
    if (home.here !== null) forget = keepToken(path, token);
    await io.stderr.say(`${server.url}\n${home.here === null ? `bearer token ${token}` : `bearer token in ${path}`}`);
    const stop = io.stop();
    if (!stop.aborted) await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
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

/** @throws UsageError for what is no address, and for one that others reach unless that was said */
function addressOf(args: Args): Address {
  const [text = ADDRESS_DEFAULT] = args.operands;
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) throw wrong(mcp, `${quoted(text)} is no HOST:PORT`);
  if (LOOPBACK.test(host) || args.flag('remote')) return { host, port };
  throw wrong(mcp, `${quoted(host)} is reached by other machines: say --remote if they shall`);
}

function sessionsOf(args: Args, io: Io): SessionOptions {
  const role = oneOf(args, 'session-role', SESSION_ROLES);
  const posture = oneOf(args, 'posture', POSTURES);
  const specs = args.text('specs');
  return {
    inlineSpecs: args.flag('inline-specs'),
    ...(role === undefined ? {} : { role }),
    ...(specs === undefined ? {} : { specs: resolve(io.cwd, specs) }),
    ...(posture === undefined ? {} : { settings: { posture } }),
  };
}

function oneOf<T extends string>(args: Args, name: string, known: readonly T[]): T | undefined {
  const value = args.text(name);
  const found = known.find((one) => one === value);
  if (value !== undefined && found === undefined) {
    throw wrong(mcp, `--${name} takes ${known.join(', ')}, not ${quoted(value)}`);
  }
  return found;
}
