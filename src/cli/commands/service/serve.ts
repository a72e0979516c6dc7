import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { limitHeapGrowth } from '../../../adapters/heap-growth.js';
import { nanoidIds } from '../../../adapters/system/nanoid-ids.js';
import { readBuiltPage } from '../../../adapters/page-folder.js';
import { systemClock } from '../../../adapters/system/system-clock.js';
import { joinTokenBooks, mintToken, TokenFile, tokenBook } from '../../../adapters/keys/token-book.js';
import type { TokenBook } from '../../../ports/token-book.js';
import type { Turnpike } from '../../../runtime/turnpike.js';
import { parsePort } from '../../arguments.js';
import { NO_OPERANDS, type CommandArguments, type CliCommand, type ExitCode } from '../../command.js';
import { homeOf } from '../../options/folders.js';
import { withHomeAccess } from '../../home-access.js';
import type { XstateInspectServer } from '../../../service/xstate-inspect.js';
import { usageError, type Io } from '../../io.js';

const HOST_DEFAULT = '127.0.0.1';
const PORT_DEFAULT = '7391';
/** The person that the command's page acts for, in a role of the shipped policy. */
const OPERATOR = { actor: 'operator', role: 'ATTORNEY_ADMIN' } as const;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** `turnpike serve`: serves the whole API over HTTP, and the inspector page. */
export const serve: CliCommand = {
  name: 'serve',
  summary: 'Serve the HTTP service, MCP and the inspector page',
  operands: NO_OPERANDS,
  options: [
    { name: 'host', value: 'HOST', help: `the address to listen on (default ${HOST_DEFAULT})` },
    { name: 'port', value: 'PORT', help: `the port (default ${PORT_DEFAULT}; 0: any that is free)` },
    { name: 'actor', value: 'NAME', help: `whom the page speaks for (default ${OPERATOR.actor})` },
    { name: 'role', value: 'ID', help: `in which role (default ${OPERATOR.role})` },
    { name: 'stored-tokens', help: 'draw no token for the page: only those of `turnpike token` open' },
    { name: 'allow-host', value: 'HOST', multiple: true, help: 'a further Host header to serve; may be repeated' },
    { name: 'allow-origin', value: 'URL', multiple: true, help: 'the origin of a page that may ask; may be repeated' },
    { name: 'demo', help: 'on a new home for a first look, where agents keep working: it is taken away at the end' },
    { name: 'xstate-inspect', value: 'PORT', help: 'also show runs to viewers of @xstate/inspect, on this port' },
    { name: 'specs', value: 'DIR', help: 'the specs that sessions may be started of, by their ids' },
    { name: 'inline-specs', help: 'specs may come with a request: what those tell to run is run' },
  ],
  notes: [
    'Every request needs a bearer token: of `turnpike token`, or the one that is drawn at the start, shown once with the',
    'address, and forgotten at the end: it may look at everything and vote. Only loopback is listened on unless there is',
    'a stored token; then put TLS in front of it. While this runs, other commands act on the home through it.',
  ],
  async run(args, io) {
    limitHeapGrowth();
    const [host, port] = [args.text('host') ?? HOST_DEFAULT, parsePort(serve, args, 'port', PORT_DEFAULT)];
    if (args.flag('demo')) return serveDemo({ host, port }, args, io);
    return withHomeAccess(
      args,
      io,
      async ({ localTurnpike: here }): Promise<ExitCode> => {
        if (here !== null) await serveHome(here, { host, port }, args, io);
        return 0;
      },
      { upstreams: true, localOnly: true },
    );
  },
};

/** The demonstration uses a temporary home and never touches an existing one. */
async function serveDemo(at: Address, args: CommandArguments, io: Io): Promise<ExitCode> {
  if (args.text('home') !== undefined) throw usageError('--demo makes a home of its own: leave out --home');
  const folder = await mkdtemp(join(tmpdir(), 'turnpike-demo-'));
  try {
    await runDemo(folder, at, args, io);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return 0;
}

async function runDemo(folder: string, at: Address, args: CommandArguments, io: Io): Promise<void> {
  // Installed before filling, so that a stop during it removes the folder too.
  const stop = io.stop();
  const { fillDemo, runDemoAgents: keepMoving, openDemo } = await import('../../demo.js');
  const turnpike = await openDemo(folder, io.log);
  const ended = new AbortController();
  let moving: Promise<void> = Promise.resolve();
  try {
    await io.stderr.writeLine(`a home for a first look is made in ${folder}, and taken away at the end`);
    await fillDemo(turnpike, stop);
    if (stop.aborted) return;
    moving = keepMoving(turnpike, ended.signal);
    await serveHome(turnpike, at, args, io);
  } finally {
    ended.abort();
    await moving;
    await turnpike.close();
  }
}

async function serveHome(turnpike: Turnpike, at: Address, args: CommandArguments, io: Io): Promise<void> {
  // Loaded here, because no other command needs it.
  const { serveTurnpike } = await import('../../../service/http/index.js');
  const stored = new TokenFile((turnpike.keys ?? homeOf(args, io)).tokens, systemClock());
  const hasStored = stored.list().some(({ id }) => stored.holds(id));
  const page = readBuiltPage();
  // Installed before the address is printed: a reader of the address may stop the command at once.
  const stop = io.stop();
  const temporaryToken = args.flag('stored-tokens') ? null : createTemporaryToken(args);
  const specs = args.text('specs');
  const server = await serveTurnpike({
    ...at,
    turnpike,
    tokens: temporaryToken === null ? stored : joinTokenBooks(temporaryToken.book, stored),
    storedTokens: hasStored,
    hosts: args.list('allow-host'),
    origins: args.list('allow-origin'),
    sessions: {
      inlineSpecs: args.flag('inline-specs'),
      ...(specs === undefined ? {} : { specs: resolve(io.cwd, specs) }),
    },
    ...(page === null ? {} : { page }),
    log: io.log,
  });
  const viewers = await serveViewers(turnpike, args, io);
  try {
    if (viewers !== null) await io.stderr.writeLine(`viewers of @xstate/inspect: ${viewers.url}`);
    await io.stderr.writeLine(temporaryToken === null ? server.url : `${server.url}/#token=${temporaryToken.token}`);
    if (!stop.aborted) await new Promise((end) => stop.addEventListener('abort', end, { once: true }));
  } finally {
    await viewers?.close();
    await server.close();
  }
}

/** Null unless the option is given. */
async function serveViewers(turnpike: Turnpike, args: CommandArguments, io: Io): Promise<XstateInspectServer | null> {
  if (args.text('xstate-inspect') === undefined) return null;
  const { inspectionHub, serveXstateInspect, watchLedger } = await import('../../../service/inspect.js');
  const hub = inspectionHub();
  const origins = args.list('allow-origin');
  const server = await serveXstateInspect({
    hub,
    origins,
    port: parsePort(serve, args, 'xstate-inspect', PORT_DEFAULT),
    log: io.log,
  });
  const failed = (error: unknown): void => io.log.error('the ledger cannot be followed for viewers', { error });
  const watch = watchLedger(turnpike.ledger, hub.inspect, { failed });
  const close = async (): Promise<void> => {
    await watch.close();
    await server.close();
  };
  return { url: server.url, close };
}

/** A token for the lifetime of this command; it appears only in the printed address. */
function createTemporaryToken(args: CommandArguments): { readonly token: string; readonly book: TokenBook } {
  const identity = { actor: args.text('actor') ?? OPERATOR.actor, role: args.text('role') ?? OPERATOR.role };
  const { token, record } = mintToken({ ...identity, rights: ['observe', 'approve'] }, systemClock(), nanoidIds());
  const records = [record];
  return { token, book: tokenBook(() => records, systemClock()) };
}
