// The protocol of @xstate/inspect 0.8 over WebSocket. The original server lets a viewer send events to the machines;
// this one only sends. The only message that it accepts from a viewer is `xstate.inspecting`.

import { WebSocketServer, type WebSocket } from 'ws';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { isJsonObject, readJson } from '../../../core/contract/json.js';
import type { InspectionHub } from './inspection-hub.js';

const VIEWERS_MAX = 16;
const RECEIVED_BYTES_MAX = 65_536;
/**
 * Limit of unsent data for a viewer. A new viewer gets all known actors at once, about 10 kB each. A viewer that falls
 * further behind is disconnected and may reconnect.
 */
const UNSENT_BYTES_MAX = 64 * 1024 * 1024;

export interface XstateInspectSocket {
  /** Takes over a connection that the caller has authorized. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): void;
}

export function xstateInspectSocket(hub: InspectionHub): XstateInspectSocket {
  const server = new WebSocketServer({ noServer: true, maxPayload: RECEIVED_BYTES_MAX, perMessageDeflate: false });
  return {
    upgrade(request, socket, head) {
      if (server.clients.size >= VIEWERS_MAX) {
        socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
        return;
      }
      server.handleUpgrade(request, socket, head, (viewer) => serveViewer(viewer, hub));
    },
    close() {
      for (const viewer of server.clients) viewer.terminate();
      server.close();
    },
  };
}

function serveViewer(viewer: WebSocket, hub: InspectionHub): void {
  let stopListening: (() => void) | null = null;
  const unsubscribe = (): void => {
    stopListening?.();
    stopListening = null;
  };
  viewer.on('close', unsubscribe);
  viewer.on('error', () => viewer.terminate());
  viewer.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary || stopListening !== null || !isInspecting(data.toString())) return;
    stopListening = hub.listen((message) => {
      if (viewer.bufferedAmount > UNSENT_BYTES_MAX) viewer.terminate();
      else if (viewer.readyState === viewer.OPEN) viewer.send(JSON.stringify(message));
    });
  });
}

function isInspecting(text: string): boolean {
  const message = readJson(text);
  return isJsonObject(message) && message['type'] === 'xstate.inspecting';
}
