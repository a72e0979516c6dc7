// A decision point on loopback. It records what it is asked, and answers as a test wants.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface AskedRequest {
  readonly body: string;
  readonly authorization: string | undefined;
}

export type Answering = (response: ServerResponse, asked: AskedRequest) => void;

export const answerJson =
  (value: unknown): Answering =>
  (response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(value));

export class DecisionServer {
  readonly asked: AskedRequest[] = [];
  answer: Answering = answerJson({ decision: true });
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  static async start(): Promise<DecisionServer> {
    const server = new DecisionServer();
    await once(server.#server.listen(0, '127.0.0.1'), 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/access/v1/evaluation`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const asked = { body: Buffer.concat(chunks).toString(), authorization: request.headers.authorization };
    this.asked.push(asked);
    this.answer(response, asked);
  }
}
