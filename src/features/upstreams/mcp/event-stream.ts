// Reads the messages of a stream of server-sent events, with limits for everything that the server sends. The parser of
// eventsource-parser has a limit for one event only.

import { createParser } from 'eventsource-parser';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Limits of a stream with all its comments: lines, and size in messages of maximum size. */
const STREAM_LINES_MAX = 100_000;
const STREAM_MESSAGES_MAX = 2;

/**
 * Calls `onMessage` with the data of each event that is a message. Ids and retry times are ignored.
 * @throws Error if the stream exceeds a limit or is not UTF-8
 */
export async function readEvents(
  body: AsyncIterable<Uint8Array>,
  messageBytesMax: number,
  onMessage: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const remaining = { bytes: STREAM_MESSAGES_MAX * messageBytesMax, lines: STREAM_LINES_MAX };
  const parser = createParser({
    maxBufferSize: messageBytesMax,
    onEvent: ({ event = 'message', data }) => {
      if (data.length > messageBytesMax) throw tooLargeError();
      if (event === 'message') onMessage(data);
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw tooLargeError();
    },
  });
  for await (const piece of body) {
    remaining.bytes -= piece.length;
    // Before they are parsed: for each line, the parser searches the rest of the piece.
    remaining.lines -= countLines(piece);
    if (remaining.bytes < 0 || remaining.lines < 0) throw tooLargeError();
    parser.feed(decoder.decode(piece, { stream: true }));
  }
  decoder.decode();
}

/** The number of line ends; one that is divided between two pieces counts twice. */
function countLines(piece: Uint8Array): number {
  let lines = 0;
  piece.forEach((byte, at) => {
    if (byte === LINE_FEED || (byte === CARRIAGE_RETURN && piece[at + 1] !== LINE_FEED)) lines += 1;
  });
  return lines;
}

const tooLargeError = (): Error => new Error('the answer is too large');
