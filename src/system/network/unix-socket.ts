// Unix sockets for a single user.
//
// A socket is bound in a private folder, gets its mode there, and is then renamed into place. So no other user can ever
// connect to it, and the rename atomically replaces what was in its place.

import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { UsageError, usageError } from '../../core/errors.js';
import { errorCode } from '../error-code.js';

/** Bytes of a socket address, without its final null byte. A longer path would be truncated silently. */
export const SOCKET_PATH_BYTES_MAX = 107;
const END_MS = 1_000;
const PRIVATE_FOLDER = '.control';
/** Error codes of a connection attempt without a listener, or with a full backlog: the caller may retry. */
const NO_LISTENER_CODES = ['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ECONNRESET'];

/** One end of a connection. */
export interface SocketConnection {
  /** The received data until the other side disconnects; an error ends it too. Read it once. */
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly closed: Promise<void>;
  /** Resolves when the operating system has taken the data. @throws if the connection is closed */
  send(text: string): Promise<void>;
  /** Closes after all data was sent, or after a second. */
  end(): Promise<void>;
  destroy(): void;
}

export interface SocketServer {
  /** Stops accepting connections and removes the socket file. Open connections stay open. */
  close(): Promise<void>;
}

export interface ListenOptions {
  readonly path: string;
  readonly connectionsMax: number;
  /** A connection without traffic for this time is closed, in ms. */
  readonly idleMs: number;
  readonly onConnection: (connection: SocketConnection) => void;
}

/**
 * Listens at `path` with mode 0600. Replaces an existing socket: the caller must know that no process uses it. The
 * listener does not keep the process running.
 * @throws UsageError if `path` exists and is not a socket, or is too long for this system
 */
export async function listenAt({ path, connectionsMax, idleMs, onConnection }: ListenOptions): Promise<SocketServer> {
  await refuseOther(path);
  const folder = join(dirname(path), PRIVATE_FOLDER);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  const bound = join(folder, basename(path));
  const server = createServer((socket) => {
    socket.setTimeout(idleMs, () => socket.destroy());
    onConnection(connectionOf(socket));
  });
  server.maxConnections = connectionsMax;
  const address = await addressOf(bound);
  try {
    await startListening(server, address.path);
    server.unref();
    await chmod(bound, 0o600);
    await rename(bound, path);
  } catch (error) {
    server.close();
    await address.release();
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return {
    close: async () => {
      await rm(path, { force: true });
      // Not awaited: the callback waits for all connections. Release the address last, because closing unlinks by it.
      server.close();
      await address.release();
    },
  };
}

/** @returns null if no process listens there @throws any other error, for example EACCES */
export async function connectTo(path: string): Promise<SocketConnection | null> {
  const address = await addressOf(path).catch((error: unknown) => {
    if (NO_LISTENER_CODES.includes(errorCode(error))) return null;
    throw error;
  });
  if (address === null) return null;
  try {
    const socket = createConnection({ path: address.path });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return connectionOf(socket);
  } catch (error) {
    if (NO_LISTENER_CODES.includes(errorCode(error))) return null;
    throw error;
  } finally {
    await address.release();
  }
}

function startListening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

interface SocketAddress {
  readonly path: string;
  release(): Promise<void>;
}

/** A path that fits into a socket address: a long one is reached through a descriptor of its folder. */
async function addressOf(path: string): Promise<SocketAddress> {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { path, release: () => Promise.resolve() };
  if (process.platform !== 'linux') {
    throw new UsageError({
      code: 'USAGE',
      message: `${path} has more than the ${SOCKET_PATH_BYTES_MAX} bytes of a socket's path: choose a shorter home`,
    });
  }
  const folder = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${folder.fd}/${basename(path)}`, release: () => folder.close() };
}

async function refuseOther(path: string): Promise<void> {
  const there = await lstat(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  });
  if (there === null || there.isSocket()) return;
  throw usageError(`${path} is not a socket: move it away`);
}

function connectionOf(socket: Socket): SocketConnection {
  // Readers see the end of the connection; its error needs no other handling.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    chunks: chunksOf(socket),
    closed,
    send: (text) =>
      new Promise((resolve, reject) => {
        socket.write(text, (error) => {
          if (error) reject(error);
          else resolve();
        });
      }),
    end: async () => {
      const timer = setTimeout(() => socket.destroy(), END_MS);
      socket.end(() => socket.destroy());
      await closed;
      clearTimeout(timer);
    },
    destroy: () => void socket.destroy(),
  };
}

async function* chunksOf(socket: Socket): AsyncGenerator<Uint8Array> {
  try {
    // A caller that stops reading may still have a response to send.
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) yield chunk as Buffer;
  } catch {
    return;
  }
}
