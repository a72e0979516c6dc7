// The control socket of a home (D13): whoever may not write, because this process holds the writer lock, acts through
// it.
//
// Invariants:
//   C1. It is served by the holder of the writer lock only, so a socket that is there already is a dead process's.
//   C2. Of the attached agent runs a connection reaches those that it started, and no others; remote ones it reaches
//       by their ids. People's answers to what runs ask, and what they have found out, may be about any run: the policy
//       judges them. Sessions take questions from every connection, and judge them by the role that comes with them.
//   C3. When a connection closes, for whatever reason, its attached agent runs that have not ended are interrupted
//       (D3). Remote runs, promotions, exports and sessions go on.
//   C4. While a connection is served, nobody retires: what could be begun on it when it began, can be until it closes.
//   C5. Lines, connections, waiting requests and silence are bounded.

import { listenAt, type SocketConnection } from '../../adapters/network/unix-socket.js';
import { RunError } from '../../errors.js';
import { ControlSession, type ControlHost } from './control-session.js';
import { createDeferred } from '../deferred.js';

const CONNECTIONS_MAX = 64;
/** A client that is alive sends something more often than this, if only a `ping`. */
export const IDLE_MS = 120_000;

export interface ControlServer {
  /** Who works through this process now. */
  readonly connections: number;
  /** Waits until nobody does; from then on nobody can begin, so that nobody is interrupted by a close that follows. */
  retire(): Promise<unknown>;
  /** Takes no more connections, and ends those that there are with their runs. */
  close(): Promise<void>;
}

/** Serves the control socket at `path`. @throws UsageError, or what the system says, when that is not possible */
export async function serveControl(path: string, host: ControlHost): Promise<ControlServer> {
  const sessions = new Set<ControlSession>();
  const idle = createDeferred<null>();
  let retiring = false;
  let retired = false;
  const retireIfIdle = (): void => {
    if (!retiring || sessions.size > 0) return;
    retired = true;
    idle.resolve(null);
  };
  const serve = async (connection: SocketConnection): Promise<void> => {
    const session = new ControlSession(connection, host, retired ? closingError() : null);
    sessions.add(session);
    await session.serve();
    sessions.delete(session);
    retireIfIdle();
  };
  const server = await listenAt({
    path,
    connectionsMax: CONNECTIONS_MAX,
    idleMs: IDLE_MS,
    onConnection: (connection) => void serve(connection),
  });
  return {
    get connections() {
      return sessions.size;
    },
    retire: () => {
      retiring = true;
      retireIfIdle();
      return idle.promise;
    },
    close: async () => {
      await server.close();
      await Promise.all([...sessions].map((session) => session.close()));
    },
  };
}

const closingError = (): RunError =>
  new RunError({ code: 'CLOSED', message: 'the process that has this home is about to end: try again' });

/**
 * The same where it can be done without: a home that cannot serve its socket is only out of reach for other processes.
 */
export const tryServeControl = (path: string, host: ControlHost): Promise<ControlServer | null> =>
  serveControl(path, host).catch((error: unknown) => {
    host.log.warn('the control socket cannot be served: other processes cannot act on this home', { error });
    return null;
  });
