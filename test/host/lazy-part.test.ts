import { describe, expect, test } from '@jest/globals';
import { LazyPart } from '../../src/host/lazy-part.js';
import { createDeferred } from '../../src/runtime/deferred.js';

interface Part {
  readonly number: number;
}

/** A part whose creation each test settles. */
function countedPart() {
  const creations: ReturnType<typeof createDeferred<Part>>[] = [];
  const part = new LazyPart<Part>(() => {
    const creation = createDeferred<Part>();
    creations.push(creation);
    return creation.promise;
  });
  return { part, creations };
}

describe('a lazy part', () => {
  test('does not exist before its first use, and is created once for concurrent callers', async () => {
    const { part, creations } = countedPart();
    expect(creations.length).toBe(0);
    const calls = [part.get(), part.get()];
    expect(creations.length).toBe(1);
    creations[0]?.resolve({ number: 1 });
    expect(await Promise.all(calls)).toEqual([{ number: 1 }, { number: 1 }]);
    expect([(await part.get()).number, creations.length]).toEqual([1, 1]);
  });

  test('rejects every call that waits for a creation that fails, and the next call creates it', async () => {
    const { part, creations } = countedPart();
    const calls = Promise.allSettled([part.get(), part.get()]);
    creations[0]?.reject(new Error('the module is missing'));
    expect(await calls).toMatchObject([{ reason: { message: 'the module is missing' } }, { status: 'rejected' }]);
    const next = part.get();
    creations[1]?.resolve({ number: 2 });
    expect(await next).toEqual({ number: 2 });
  });

  test('is closed only if it was used, and closing waits for a creation in flight', async () => {
    const unused = countedPart();
    const closed: number[] = [];
    const close = ({ number }: Part): unknown => closed.push(number);
    await unused.part.close(close);
    expect([unused.creations.length, closed]).toEqual([0, []]);

    const { part, creations } = countedPart();
    void part.get();
    let hasClosed = false;
    const closing = part.close(close).then(() => (hasClosed = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect([hasClosed, closed]).toEqual([false, []]);
    creations[0]?.resolve({ number: 3 });
    await closing;
    expect(closed).toEqual([3]);
  });

  test('is closed at once if it is created after the close', async () => {
    const { part, creations } = countedPart();
    const closed: number[] = [];
    await part.close(({ number }) => closed.push(number));
    const call = part.get();
    creations[0]?.resolve({ number: 4 });
    expect([await call, closed]).toEqual([{ number: 4 }, [4]]);
  });

  test('closing reports no error of a creation, which the caller has', async () => {
    const { part, creations } = countedPart();
    const call = part.get().catch((error: unknown) => error);
    const closing = part.close(() => {
      throw new Error('nothing was opened');
    });
    creations[0]?.reject(new Error('the module is missing'));
    await expect(closing).resolves.toBeUndefined();
    expect(await call).toMatchObject({ message: 'the module is missing' });
  });
});
