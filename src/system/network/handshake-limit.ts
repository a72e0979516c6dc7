// Limits the connections that have not finished their TLS handshake: they have no request that could be limited.

import type { Server } from 'node:https';
import type { Socket } from 'node:net';

/** Inserts itself into an HTTPS server. A new handshake beyond the limit closes the oldest unfinished one. */
export function limitHandshakes(server: Server, handshakesMax: number): void {
  /** By remote address and port: the secured socket is another object than the connection. */
  const unfinished = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    unfinished.set(name, socket);
    socket.once('close', () => {
      if (unfinished.get(name) === socket) unfinished.delete(name);
    });
    if (unfinished.size <= handshakesMax) return;
    const [oldest] = unfinished.values();
    oldest?.destroy();
  });
  server.on('secureConnection', (socket) => unfinished.delete(nameOf(socket)));
}

const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress ?? ''} ${remotePort ?? ''}`;
