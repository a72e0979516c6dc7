export interface DeferredPromise<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise with its resolve and reject functions. */
export function createDeferred<T>(): DeferredPromise<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  return { promise, resolve, reject };
}

/** Prevents an unhandled rejection if no caller waits for the promise. */
export function ignoreRejection<T>(deferred: DeferredPromise<T>): DeferredPromise<T> {
  deferred.promise.catch(() => undefined);
  return deferred;
}
