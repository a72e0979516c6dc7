// Sends HTTP as bytes, with every header exactly as a test writes it.

import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends these lines and this body. Resolves with the first response when it is complete or the server disconnects. */
export function rawRequest(port: number, lines: readonly string[], body: string | Uint8Array = ''): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    const isBare = lines[0]?.startsWith('HEAD ') === true;
    const done = (): void => {
      const answer = answerOf(text, isBare);
      if (answer === null) return;
      socket.destroy();
      resolve(answer);
    };
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      done();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      done();
      reject(new Error(`no answer: ${JSON.stringify(text)}`));
    });
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    socket.write(body);
  });
}

/** @param isBare whether the response declares a body that it does not have, as for HEAD */
function answerOf(text: string, isBare: boolean): RawAnswer | null {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const [status = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const body = text.slice(end + 4);
  if (!isBare && body.length < Number(headers['content-length'] ?? 0)) return null;
  return { status: Number(status.split(' ')[1]), headers, body };
}
