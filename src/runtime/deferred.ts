export interface DeferredPromise<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise that somebody else settles. */
export function createDeferred<T>(): DeferredPromise<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  return { promise, resolve, reject };
}

/** Whoever does not wait for the end need not hear that nobody will tell it. */
export function ignoreRejection<T>(deferred: DeferredPromise<T>): DeferredPromise<T> {
  deferred.promise.catch(() => undefined);
  return deferred;
}
