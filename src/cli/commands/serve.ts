import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { limitHeapGrowth } from '../../adapters/heap-growth.js';
import { nanoidIds } from '../../adapters/nanoid-ids.js';
import { builtPage } from '../../adapters/page-folder.js';
import { systemClock } from '../../adapters/system-clock.js';
import { joinedBooks, mintToken, TokenFile, tokenBook } from '../../adapters/token-book.js';
import type { TokenBook } from '../../ports/token-book.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { portIn } from '../arguments.js';
import { NO_OPERANDS, type Args, type Command, type ExitCode } from '../command.js';
import { homeOf } from '../folders.js';
import { withHome } from '../held-home.js';
import type { XstateInspectServer } from '../../service/xstate-inspect.js';
import { usage, type Io } from '../io.js';

const HOST_DEFAULT = '127.0.0.1';
const PORT_DEFAULT = '7391';
/** Whom the page speaks for that the command opens: a person, in a role that the shipped policy has. */
const OPERATOR = { actor: 'operator', role: 'ATTORNEY_ADMIN' } as const;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** `turnpike serve`: everything over HTTP, and the page that shows it. */
export const serve: Command = {
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
    const [host, port] = [args.text('host') ?? HOST_DEFAULT, portIn(serve, args, 'port', PORT_DEFAULT)];
    if (args.flag('demo')) return servedDemo({ host, port }, args, io);
    return withHome(
      args,
      io,
      async ({ here }): Promise<ExitCode> => {
        if (here !== null) await served(here, { host, port }, args, io);
        return 0;
      },
      { upstreams: true, own: true },
    );
  },
};

/** The demonstration's home is its own: it never touches one that is there. */
async function servedDemo(at: Address, args: Args, io: Io): Promise<ExitCode> {
  if (args.text('home') !== undefined) throw usage('--demo makes a home of its own: leave out --home');
  const folder = await mkdtemp(join(tmpdir(), 'turnpike-demo-'));
  try {
    await demonstrated(folder, at, args, io);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return 0;
}

async function demonstrated(folder: string, at: Address, args: Args, io: Io): Promise<void> {
  // From now on: whoever ends it while it is filled finds nothing left of it either.
  const stop = io.stop();
  const { fillDemo, keepMoving, openDemo } = await import('../demo.js');
  const turnpike = await openDemo(folder, io.log);
  const ended = new AbortController();
  let moving: Promise<void> = Promise.resolve();
  try {
    await io.stderr.say(`a home for a first look is made in ${folder}, and taken away at the end`);
    await fillDemo(turnpike, stop);
    if (stop.aborted) return;
    moving = keepMoving(turnpike, ended.signal);
    await served(turnpike, at, args, io);
  } finally {
    ended.abort();
    await moving;
    await turnpike.close();
  }
}

async function served(turnpike: Turnpike, at: Address, args: Args, io: Io): Promise<void> {
  // Loaded now, since no other command needs it.
  const { serveTurnpike } = await import('../../service/http/index.js');
  const stored = new TokenFile((turnpike.keys ?? homeOf(args, io)).tokens, systemClock());
  const hasStored = stored.list().some(({ id }) => stored.holds(id));
  const page = builtPage();
  // From now on: whoever has read the address may end it at once.
  const stop = io.stop();
  const drawn = args.flag('stored-tokens') ? null : drawnFor(args);
  const specs = args.text('specs');
  const server = await serveTurnpike({
    ...at,
    turnpike,
    tokens: drawn === null ? stored : joinedBooks(drawn.book, stored),
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
  const viewers = await viewersOf(turnpike, args, io);
  try {
    if (viewers !== null) await io.stderr.say(`viewers of @xstate/inspect: ${viewers.url}`);
    await io.stderr.say(drawn === null ? server.url : `${server.url}/#token=${drawn.token}`);
    if (!stop.aborted) await new Promise((end) => stop.addEventListener('abort', end, { once: true }));
  } finally {
    await viewers?.close();
    await server.close();
  }
}

/** Null where nobody has asked for it. */
async function viewersOf(turnpike: Turnpike, args: Args, io: Io): Promise<XstateInspectServer | null> {
  if (args.text('xstate-inspect') === undefined) return null;
  const { inspectionHub, serveXstateInspect, watchLedger } = await import('../../service/inspect.js');
  const hub = inspectionHub();
  const origins = args.list('allow-origin');
  const server = await serveXstateInspect({
    hub,
    origins,
    port: portIn(serve, args, 'xstate-inspect', PORT_DEFAULT),
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

/** A token that is nowhere but in the address that is shown, for as long as this runs. */
function drawnFor(args: Args): { readonly token: string; readonly book: TokenBook } {
  const who = { actor: args.text('actor') ?? OPERATOR.actor, role: args.text('role') ?? OPERATOR.role };
  const { token, record } = mintToken({ ...who, rights: ['observe', 'approve'] }, systemClock(), nanoidIds());
  const records = [record];
  return { token, book: tokenBook(() => records, systemClock()) };
}
