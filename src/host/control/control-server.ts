// Serves the control socket of a home (D13). The process that holds the writer lock executes the requests of all other
// processes.
//
// Invariants:
//   C1. Only the holder of the writer lock serves the socket, so an existing socket file is left over from a dead
//       process.
//   C2. A connection reaches the attached agent runs that it started, no others, and remote runs by their ids. Ballots
//       and resolutions may concern any run: policy decides about them. Sessions accept commands from every connection,
//       and check them against the role in the command.
//   C3. When a connection closes, for any reason, its attached agent runs that have not ended are interrupted (D3).
//       Remote runs, promotions, exports and sessions continue.
//   C4. The process does not retire while it serves a connection: whatever a client could start when it connected, it
//       can start until it disconnects.
//   C5. The length of lines and the numbers of connections and pending requests are bounded, and idle connections are
//       closed.

import { listenAt, type SocketConnection } from '../../system/network/unix-socket.js';
import { RunError } from '../../core/errors.js';
import { ControlSession, type ControlHost } from './control-session.js';
import { createDeferred } from '../../runtime/deferred.js';

const CONNECTIONS_MAX = 64;
/** Idle timeout in milliseconds. A live client sends messages more often, if only a `ping`. */
export const IDLE_MS = 120_000;

export interface ControlServer {
  /** The number of clients that work through this process. */
  readonly connections: number;
  /** Waits until no client is connected and accepts no further one, so that a following `close` interrupts no run. */
  retire(): Promise<unknown>;
  /** Accepts no more connections, and closes the open ones with their runs. */
  close(): Promise<void>;
}

/** Serves the control socket at `path`. @throws UsageError, or the error of the system */
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

/** Like `serveControl`, but returns null on failure: then other processes cannot reach this home. */
export const tryServeControl = (path: string, host: ControlHost): Promise<ControlServer | null> =>
  serveControl(path, host).catch((error: unknown) => {
    host.log.warn('the control socket cannot be served: other processes cannot act on this home', { error });
    return null;
  });
