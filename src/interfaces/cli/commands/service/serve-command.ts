import { usageError } from '../../../../core/errors.js';
import { omitUndefined } from '../../../../core/omit-undefined.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { limitHeapGrowth } from '../../../../system/heap-growth.js';
import { nanoidIds } from '../../../../system/nanoid-ids.js';
import { readBuiltPage } from '../../../inspector/page-folder.js';
import { systemClock } from '../../../../system/system-clock.js';
import { joinTokenBooks, mintToken, TokenFile, tokenBook } from '../../../../stores/keys/token-file.js';
import type { TokenBook } from '../../../../engine/ports/token-book.js';
import type { Turnpike } from '../../../../host/turnpike.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type ExitCode,
  type CommandArguments,
} from '../../command.js';
import { PORT_TYPE } from '../../option-types.js';
import { homeOf } from '../../options/folders.js';
import { CALLER_OPTIONS, TOOL_OPTIONS } from '../../options/added-options.js';
import { type LocalWorker, WAIT_OPTION } from '../../store/open-worker.js';
import { HEADS_OPTION, STORE_OPTION } from '../../store/shared-home.js';
import { withHomeAccess } from '../../home-access.js';
import {
  ADMIN_OPTION,
  LEDGER_FAILURE_OPTION,
  networkOf,
  NETWORK_OPTIONS,
  NEW_RUNS_OPTION,
  REPORT_OPTIONS,
  withServiceLife,
  type ServiceLife,
} from '../../options/service-options.js';
import type { XstateInspectServer } from '../../../inspector/xstate/xstate-inspect.js';
import type { Io } from '../../io.js';

const HOST_DEFAULT = '127.0.0.1';
const PORT_DEFAULT = '7391';
/** The person that the command's page acts for, in a role of the shipped policy. */
const OPERATOR = { actor: 'operator', role: 'ATTORNEY_ADMIN' } as const;

const OPTIONS = [
  { name: 'host', value: 'HOST', default: HOST_DEFAULT, help: `the address to listen on (default ${HOST_DEFAULT})` },
  {
    name: 'port',
    value: 'PORT',
    type: PORT_TYPE,
    default: PORT_DEFAULT,
    help: `the port (default ${PORT_DEFAULT}; 0: any free port)`,
  },
  {
    name: 'actor',
    value: 'NAME',
    default: OPERATOR.actor,
    help: `the actor of the page (default ${OPERATOR.actor})`,
  },
  { name: 'role', value: 'ID', default: OPERATOR.role, help: `the role of the page (default ${OPERATOR.role})` },
  { name: 'stored-tokens', help: 'create no token for the page: accept only tokens of `turnpike token`' },
  ...NETWORK_OPTIONS,
  ...(CALLER_OPTIONS?.options ?? []),
  STORE_OPTION,
  HEADS_OPTION,
  WAIT_OPTION,
  {
    name: 'advertise',
    value: 'URL',
    help: 'with a shared ledger: the URL at which other machines reach this process',
  },
  ADMIN_OPTION,
  LEDGER_FAILURE_OPTION,
  { name: 'hooks', help: 'decide the calls of coding agents too (`turnpike agents install`)' },
  { name: 'demo', help: 'serve a temporary home directory with demonstration agents; deleted at the end' },
  {
    name: 'xstate-inspect',
    value: 'PORT',
    type: PORT_TYPE,
    help: 'also serve viewers of @xstate/inspect on this port',
  },
  NEW_RUNS_OPTION,
  ...(TOOL_OPTIONS?.serve ?? []),
  ...REPORT_OPTIONS,
] as const satisfies readonly CommandOption[];

type ServeArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike serve`: serves the whole API over HTTP, and the inspector page. */
export const serve: CliCommand = defineCommand({
  name: 'serve',
  access: 'write',
  accessWith: [{ given: 'demo', access: 'none' }],
  section: 'serve',
  summary: 'Serve the HTTP API, MCP and the inspector page',
  operands: NO_OPERANDS,
  options: OPTIONS,
  notes: [
    'Every request needs a bearer token: one of `turnpike token`, or the one that the command creates at the start,',
    'prints once with the address, and discards at the end; that one may read everything and vote. The command listens',
    'on loopback only, unless there is a stored token; in that case use --tls-cert, or a proxy. While it runs, other',
    'commands use the home directory through it. Any number of processes can serve one ledger in a database: each needs',
    'a home directory of its own, from `turnpike init --store`, and callers may use any of them.',
  ],
  async run(args, given) {
    limitHeapGrowth();
    const { demo, hooks, wait: seconds } = args.values;
    const serveWithin = (life: ServiceLife): Promise<ExitCode> => {
      const { io, reaction, telemetry } = life;
      const wait = { ms: seconds * 1_000, clock: systemClock(), log: io.log };
      return withHomeAccess(
        args,
        io,
        async ({ localTurnpike: here, worker: own }): Promise<ExitCode> => {
          if (here !== null) await serveHome({ turnpike: here, own, life }, args);
          return 0;
        },
        { upstreams: true, hooks, localOnly: true, reaction, telemetry, wait },
      );
    };
    return withServiceLife(args, given, (life) => (demo ? serveDemo(args, life) : serveWithin(life)), true);
  },
});

/** The demonstration uses a temporary home and never touches an existing one. */
async function serveDemo(args: ServeArguments, life: ServiceLife): Promise<ExitCode> {
  if (args.isGiven('home')) throw usageError('--demo creates a home directory of its own: omit --home');
  const folder = await mkdtemp(join(tmpdir(), 'turnpike-demo-'));
  try {
    await runDemo(folder, args, life);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return 0;
}

async function runDemo(folder: string, args: ServeArguments, life: ServiceLife): Promise<void> {
  const { io, telemetry } = life;
  // Installed before filling, so that a stop during it removes the folder too.
  const stop = life.stop();
  const { fillDemo, runDemoAgents: keepMoving, openDemo } = await import('../../demo.js');
  const turnpike = await openDemo(folder, {
    log: io.log,
    ...life.reaction,
    ...(telemetry === null ? {} : { telemetry }),
  });
  const ended = new AbortController();
  let moving: Promise<void> = Promise.resolve();
  try {
    await io.stderr.writeLine(`created a demonstration home directory in ${folder}; it is deleted at the end`);
    await fillDemo(turnpike, stop);
    if (stop.aborted) return;
    moving = keepMoving(turnpike, ended.signal);
    await serveHome({ turnpike, own: null, life }, args);
  } finally {
    ended.abort();
    await moving;
    await turnpike.close();
  }
}

interface ServedHome {
  readonly turnpike: Turnpike;
  /** Null unless other processes may write to the ledger too. */
  readonly own: LocalWorker | null;
  readonly life: ServiceLife;
}

async function serveHome({ turnpike, own, life }: ServedHome, args: ServeArguments): Promise<void> {
  const { io } = life;
  const { host, port, storedTokens, newRunsMax, advertise } = args.values;
  // Loaded here, because no other command needs it.
  const { serveTurnpike } = await import('../../../http/index.js');
  const stored = new TokenFile((turnpike.keys ?? homeOf(args, io)).tokens, systemClock());
  const hasStored = stored.list().some(({ id }) => stored.holds(id));
  const page = readBuiltPage();
  // Installed before the address is printed: a reader of the address may stop the command at once.
  life.stop();
  const temporaryToken = storedTokens ? null : createTemporaryToken(args);
  const identity = CALLER_OPTIONS?.parse(args, io);
  const server = await serveTurnpike({
    host,
    port,
    ...networkOf(args.values),
    turnpike,
    tokens: temporaryToken === null ? stored : joinTokenBooks(temporaryToken.book, stored),
    storedTokens: hasStored,
    ...omitUndefined({ identity }),
    ...TOOL_OPTIONS?.parse(args),
    ...omitUndefined({ page: page ?? undefined, newRunsMax }),
    ...(own === null
      ? {}
      : { cluster: own.cluster, withoutVolume: own.volume_id === null, unsafeShared: own.unsafeShared }),
    ...omitUndefined({ admin: life.admin ?? undefined, telemetry: life.telemetry ?? undefined }),
    hookCounts: { home: homeOf(args, io).home, environment: io.environment },
    log: io.log,
  });
  own?.serveAt(advertise ?? server.url);
  const viewers = await serveViewers(turnpike, args, io);
  try {
    if (viewers !== null) await io.stderr.writeLine(`viewers of @xstate/inspect: ${viewers.url}`);
    await io.stderr.writeLine(temporaryToken === null ? server.url : `${server.url}/#token=${temporaryToken.token}`);
    await life.waitForEnd();
  } finally {
    await viewers?.close();
    await server.close();
  }
}

/** Null unless the option is given. */
async function serveViewers(
  turnpike: Turnpike,
  { values }: ServeArguments,
  io: Io,
): Promise<XstateInspectServer | null> {
  const { xstateInspect: port, allowOrigin: origins } = values;
  if (port === undefined) return null;
  const { inspectionHub, serveXstateInspect, watchLedger } = await import('../../../inspector/inspect.js');
  const hub = inspectionHub();
  const server = await serveXstateInspect({ hub, origins, port, log: io.log });
  const failed = (error: unknown): void => io.log.error('the ledger cannot be followed for viewers', { error });
  const watch = watchLedger(turnpike.ledger, hub.inspect, { failed });
  const close = async (): Promise<void> => {
    await watch.close();
    await server.close();
  };
  return { url: server.url, close };
}

/** A token for the lifetime of this command; it appears only in the printed address. */
function createTemporaryToken({ values }: ServeArguments): { readonly token: string; readonly book: TokenBook } {
  const { actor, role } = values;
  const { token, record } = mintToken({ actor, role, rights: ['observe', 'approve'] }, systemClock(), nanoidIds());
  const records = [record];
  return { token, book: tokenBook(() => records, systemClock()) };
}

/** `turnpike worker`: a worker of a shared ledger without an HTTP service. */
export const worker: CliCommand = defineCommand({
  name: 'worker',
  access: 'write',
  section: 'worker',
  summary: 'Run a worker of a shared ledger without an HTTP service',
  operands: NO_OPERANDS,
  options: [STORE_OPTION, HEADS_OPTION, WAIT_OPTION, ADMIN_OPTION, LEDGER_FAILURE_OPTION, ...REPORT_OPTIONS],
  notes: [
    'The worker fires timers, settles the effects of workers that are gone, and integrates commits into the log, until',
    'it receives SIGTERM. After the loss of the database it joins again by itself. Needs a home directory of',
    '`turnpike init --store`. Other commands of this home work through it.',
  ],
  async run(args, io) {
    limitHeapGrowth();
    return withServiceLife(args, io, (life) => runWorker(args, args.values.wait, life));
  },
});

function runWorker(args: CommandArguments, waitSeconds: number, life: ServiceLife): Promise<ExitCode> {
  const { io, telemetry } = life;
  const stop = life.stop();
  const wait = { ms: waitSeconds * 1_000, clock: systemClock(), log: io.log, stop };
  const { home } = homeOf(args, io);
  return withHomeAccess(
    args,
    io,
    async ({ worker: own, localTurnpike: turnpike }): Promise<ExitCode> => {
      if (own === null || turnpike === null) {
        throw usageError(`${home} does not name a database: create a home with \`turnpike init --store URL\``);
      }
      await io.stderr.writeLine(
        `this worker has joined the ledger, ${own.volume_id === null ? 'without the volume' : `with volume ${own.volume_id}`}`,
      );
      if (life.admin !== null) {
        const { workerMetrics } = await import('../../../http/metrics.js');
        life.admin.begin({ readiness: turnpike.readiness, metrics: workerMetrics(turnpike, own.cluster, telemetry) });
      }
      const unwatch = life.admin === null ? turnpike.readiness.watch() : null;
      await life.waitForEnd();
      unwatch?.();
      return 0;
    },
    { localOnly: true, reaction: life.reaction, telemetry, wait },
  );
}
