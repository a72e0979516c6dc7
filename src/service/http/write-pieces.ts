import type { Clock } from '../../ports/clock.js';

/** A response that is written in pieces. */
export interface PieceWriter {
  readonly destroyed: boolean;
  write(piece: string | Uint8Array): boolean;
  end(): unknown;
  destroy(): unknown;
  once(event: 'drain' | 'close', listener: () => void): unknown;
  off(event: 'drain' | 'close', listener: () => void): unknown;
}

export interface DrainLimits {
  readonly clock: Pick<Clock, 'now' | 'wake'>;
  /** Milliseconds that a client may leave a piece unread. */
  readonly drainMs: number;
  /** Aborted when the connection is closed: of responses that wait behind others, Node does not say so. */
  readonly signal: AbortSignal;
}

/**
 * Writes pieces, each made when the client has read the one before. For a client that leaves, or reads nothing for
 * `drainMs`, no more pieces are made.
 * @throws what making a piece throws, after the connection was closed: half of an answer must not pass for all of it
 */
export async function writePieces(
  out: PieceWriter,
  pieces: AsyncIterable<string | Uint8Array>,
  limits: DrainLimits,
): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (out.destroyed || limits.signal.aborted) return;
      if (!out.write(piece) && !(await waitForDrain(out, limits))) return;
    }
    out.end();
  } catch (error) {
    out.destroy();
    throw error;
  }
}

/** @returns whether the client takes more */
function waitForDrain(out: PieceWriter, { clock, drainMs, signal }: DrainLimits): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (canTakeMore: boolean): void => {
      cancelTimeout();
      out.off('drain', onDrain);
      out.off('close', onClose);
      signal.removeEventListener('abort', onClose);
      resolve(canTakeMore);
    };
    const onDrain = (): void => done(true);
    const onClose = (): void => done(false);
    const cancelTimeout = clock.wake(clock.now() + drainMs, () => {
      out.destroy();
      done(false);
    });
    out.once('drain', onDrain);
    out.once('close', onClose);
    signal.addEventListener('abort', onClose, { once: true });
    if (out.destroyed || signal.aborted) done(false);
  });
}

/** Characters of a piece: fewer would be more writes, more would be more memory. */
const PIECE_CHARS = 16_384;

export interface ListedJson {
  /** Members that come before the list. */
  readonly before?: object;
  /** The name of the list. */
  readonly name: string;
  /** What it has. The members that come behind it are what the generator returns. */
  readonly items: AsyncGenerator<unknown, object>;
}

/** An object with one long list as JSON, in pieces: no more of the list is made than has been read. */
export async function* streamJson({ before = {}, name, items }: ListedJson): AsyncGenerator<string> {
  const members = JSON.stringify(before).slice(1, -1);
  let piece = `{${members}${members === '' ? '' : ','}${JSON.stringify(name)}:[`;
  let isFirst = true;
  try {
    for (;;) {
      const item = await items.next();
      if (item.done === true) {
        const trailer = JSON.stringify(item.value).slice(1, -1);
        yield `${piece}]${trailer === '' ? '' : ','}${trailer}}`;
        return;
      }
      piece += `${isFirst ? '' : ','}${JSON.stringify(item.value)}`;
      isFirst = false;
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = '';
    }
  } finally {
    await items.return({});
  }
}
