import type { DrainLimits } from '../admission/admission-controller.js';

/** The response that the pieces are written to. */
export interface PieceWriter {
  readonly destroyed: boolean;
  write(piece: string | Uint8Array): boolean;
  end(): unknown;
  destroy(): unknown;
  once(event: 'drain' | 'close', listener: () => void): unknown;
  off(event: 'drain' | 'close', listener: () => void): unknown;
}

/**
 * Writes pieces; each is produced when the client has read the one before. Stops if the client leaves, or reads nothing
 * for `drainMs`.
 * @throws the error of a piece, after closing the connection: a partial response must not look complete
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

/** @returns whether the client can receive more */
export function waitForDrain(
  out: PieceWriter,
  { clock, drainMs, signal }: Omit<DrainLimits, 'signal'> & Partial<DrainLimits>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (canTakeMore: boolean): void => {
      cancelTimeout();
      out.off('drain', onDrain);
      out.off('close', onClose);
      signal?.removeEventListener('abort', onClose);
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
    signal?.addEventListener('abort', onClose, { once: true });
    if (out.destroyed || signal?.aborted === true) done(false);
  });
}

/** Characters per piece: a smaller limit means more writes, a larger one more memory. */
const PIECE_CHARS = 16_384;

interface ListedJson {
  /** Members before the list. */
  readonly before?: object;
  /** The name of the list. */
  readonly name: string;
  /** The items of the list. The generator returns the members after the list. */
  readonly items: AsyncGenerator<unknown, object>;
}

/** Yields an object with one long list as JSON in pieces; items are produced only as fast as the pieces are read. */
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
